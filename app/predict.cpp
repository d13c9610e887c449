// `towers predict`: which class a picture shows, or each image of a split of the data set.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <vector>

#include "app/backend_choice.h"
#include "app/checkpoint_path.h"
#include "app/commands.h"
#include "app/csv_text.h"
#include "app/evaluation.h"
#include "app/json_text.h"
#include "app/setup.h"
#include "cli/console.h"
#include "core/error.h"
#include "core/models/cifar10.h"
#include "core/resample.h"
#include "data/checkpoint.h"
#include "data/file.h"
#include "data/model_checkpoint.h"
#include "data/picture.h"
#include "data/run_folder.h"

namespace towers::app {
namespace {

constexpr std::size_t kNamed = 5;  // classes per picture
constexpr const char* kTableStart = "index,label,class,probability";

std::vector<double> softmax(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> probabilities;
  for (float logit : logits) probabilities.push_back(std::exp(logit - largest));
  const double sum = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  for (double& p : probabilities) p /= sum;
  return probabilities;
}

// Classes, the likeliest first; of equals the lower number.
std::vector<std::size_t> by_probability(const std::vector<double>& probabilities) {
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return probabilities[a] > probabilities[b];
  });
  return order;
}

std::string number(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// A table of an earlier call is written anew; another file keeps what it holds.
void refuse_other_table(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return;  // which writing finds out
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  if (file.is_open() && !line.starts_with(kTableStart) && std::filesystem::file_size(path) > 0)
    throw Error(
        "--csv=" + path.string() +
        " exists and is not a table of predictions, so it was not touched; give another name");
}

// A picture that was named, and what became of it.
struct Named {
  std::string file;
  std::string error{};  // empty: it is in the data set, in order
  int width = 0, height = 0;
  std::vector<double> probabilities{};
};

// The pictures as a data set, so that they take the same way through the net as the data set's.
data::Dataset read_pictures(std::vector<Named>& pictures) {
  data::Dataset set{"pictures", {}};
  for (Named& named : pictures) {
    try {
      const data::Picture picture = data::read_picture(named.file);
      const std::size_t at = set.records.size();
      set.records.resize(at + data::kRecordBytes);
      resample_central_square(picture.rgb, picture.width, picture.height, data::kImageSide,
                              std::span(set.records).subspan(at + 1));
      named.width = picture.width;
      named.height = picture.height;
    } catch (const Error& error) {
      named.error = error.what();
    } catch (const std::bad_alloc&) {
      named.error = "cannot read the picture " + named.file + ": out of memory";
    }
  }
  return set;
}

class Predictor {
 public:
  explicit Predictor(const cli::PredictOptions& options)
      : options_(options),
        net_(cifar10_net()),
        layout_(net_),
        prefix_(find_checkpoint(options.checkpoint_dir)),
        reader_(prefix_),
        step_(data::restore_global_step(reader_)),
        backend_(make_backend(options)),
        variables_(layout_.size()) {
    if (options.raw_weights)
      data::restore_variables(reader_, layout_, variables_);
    else
      data::restore_averages(reader_, layout_, variables_);
    names_ = data::class_names_of(options.data_dir);
  }

  int split() {
    const bool to_file = options_.csv != "-";
    // A place that takes no file is told now, not after an evaluation of minutes.
    if (to_file) const data::AtomicFile attempt(options_.csv);
    const data::Dataset set = load_dataset(options_, parse_split(options_.eval_data));
    std::string header = kTableStart;
    if (options_.logits)
      for (const std::string& name : names_) header += "," + csv_quoted("logit_" + name);
    std::string table;
    const auto put = [&](const std::string& line) {
      if (to_file)
        table += line + "\n";
      else
        cli::print_line(line);
    };
    put(header);
    each(set, [&](std::size_t index, std::span<const float> logits) {
      const std::vector<double> p = softmax(logits);
      const std::size_t best = by_probability(p).front();
      std::string line = std::to_string(index) + "," +
                         csv_quoted(names_[static_cast<std::size_t>(set.label(index))]) + "," +
                         csv_quoted(names_[best]) + "," + number("%.6f", p[best]);
      if (options_.logits)
        for (float logit : logits) line += "," + number("%.9g", double{logit});
      put(line);
    });
    if (to_file) data::write_file_atomically(options_.csv, table);
    return 0;
  }

  int pictures() {
    std::vector<Named> pictures;
    for (const std::string& file : options_.arguments) pictures.push_back({.file = file});
    const data::Dataset set = read_pictures(pictures);
    std::vector<Named*> read;
    for (Named& named : pictures)
      if (named.error.empty()) read.push_back(&named);
    each(set, [&](std::size_t index, std::span<const float> logits) {
      read[index]->probabilities = softmax(logits);
    });
    if (options_.json)
      print_json(pictures);
    else
      print_tables(pictures);
    for (const Named& named : pictures)
      if (!named.error.empty()) cli::log_error(named.error);
    return read.size() == pictures.size() ? 0 : 1;
  }

 private:
  void each(const data::Dataset& set, const Evaluation::Use& use) {
    if (set.size() == 0) return;
    const int batch =
        static_cast<int>(std::min(set.size(), static_cast<std::size_t>(options_.batch_size)));
    Evaluation evaluation(*backend_, net_, set, batch, parse_precision(options_.precision));
    evaluation.each(variables_, static_cast<std::int64_t>(set.size()), cli::stdout_closed, use);
  }

  void print_tables(const std::vector<Named>& pictures) const {
    for (const Named& named : pictures) {
      if (!named.error.empty()) continue;
      cli::print_line(cli::one_line(named.file));
      std::vector<std::pair<std::string, std::string>> rows;
      for (std::size_t c : best(named))
        rows.emplace_back("  " + names_[c], number("%.4f", named.probabilities[c]));
      cli::print_line(cli::table(rows));
    }
  }

  void print_json(const std::vector<Named>& pictures) const {
    Json list = Json::array();
    for (const Named& named : pictures) {
      if (!named.error.empty()) {
        list.push_back({{"file", app::named(named.file)}, {"error", named.error}});
        continue;
      }
      Json classes = Json::array();
      for (std::size_t c : best(named))
        classes.push_back({{"class", names_[c]}, {"probability", named.probabilities[c]}});
      list.push_back({{"file", app::named(named.file)},
                      {"width", named.width},
                      {"height", named.height},
                      {"predictions", classes}});
    }
    print(
        {{"checkpoint", app::named(prefix_.string())}, {"global_step", step_}, {"pictures", list}});
  }

  static std::vector<std::size_t> best(const Named& named) {
    std::vector<std::size_t> order = by_probability(named.probabilities);
    order.resize(std::min(order.size(), kNamed));
    return order;
  }

  const cli::PredictOptions& options_;
  Net net_;
  VariableLayout layout_;
  std::filesystem::path prefix_;
  data::CheckpointReader reader_;
  std::int64_t step_;
  std::unique_ptr<Backend> backend_;
  std::vector<float> variables_;
  std::vector<std::string> names_;
};

}  // namespace

int run_predict(const cli::PredictOptions& options) {
  if (!options.csv.empty() && !options.arguments.empty())
    throw UsageError(
        "--csv is for a split of the data set (--eval_data): name no files, or use "
        "--json for them");
  if (options.csv.empty() && options.arguments.empty())
    throw UsageError("towers predict needs pictures, or --csv=FILE for a split of the data set");
  if (!options.csv.empty() && options.json)
    throw UsageError("--csv and --json contradict each other: give one of them");
  if (options.logits && options.csv.empty())
    throw UsageError("--logits are columns of a table: give --csv=FILE too");
  if (options.csv != "-") refuse_other_table(options.csv);
  Predictor predictor(options);
  return options.csv.empty() ? predictor.pictures() : predictor.split();
}

}  // namespace towers::app
