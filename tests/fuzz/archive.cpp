// The data set's archive: a set of two small files, so that a whole one is within reach.

#include "data/archive_internal.h"
#include "tests/fuzz/target.h"

using namespace towers;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const data::ArchiveSpec spec{.file = "set.tar.gz",
                                      .folder = "set",
                                      .members = {{"a.bin", 3, true}, {"b.txt", 100, false}},
                                      .url = {},
                                      .sha256 = {},
                                      .md5 = {},
                                      .bytes = 0};
  const std::filesystem::path archive = fuzz::folder() / "set.tar.gz";
  const std::filesystem::path out = fuzz::folder() / "inside" / "set";
  fuzz::write_file(archive, fuzz::view(bytes, size));
  fuzz::expect_errors_alone([&] {
    data::commit_members(data::stage_members(spec, archive, out), out);
    if (std::filesystem::file_size(out / "a.bin") != 3) fuzz::fail("a.bin is not whole");
  });
  std::filesystem::remove_all(fuzz::folder() / "inside");
  // Nothing may have been written beside the set.
  for (const auto& file : std::filesystem::directory_iterator(fuzz::folder()))
    if (file.path() != archive) fuzz::fail(file.path().string() + " was written");
  return 0;
}
