// `towers download`: gets the data set, and nothing else.

#include "app/commands.h"
#include "app/setup.h"
#include "cli/console.h"
#include "data/dataset.h"

namespace towers::app {

int run_download(const cli::DownloadOptions& options) {
  if (options.dataset == "synthetic") {
    cli::log_info("--dataset=synthetic is made in memory: nothing to download");
    return 0;
  }
  obtain_cifar10(options);
  for (const data::Split split : {data::Split::train, data::Split::test})
    data::load_cifar10(options.data_dir, split);  // validates every record
  cli::print_line(data::find_batches_folder(options.data_dir).string());
  return 0;
}

}  // namespace towers::app
