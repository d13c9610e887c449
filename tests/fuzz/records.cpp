// The data set's records: a file of the right length, or one a little off (the first byte), with
// some of its bytes changed, each piece two bytes of place and the new ones.

#include <vector>

#include "data/dataset.h"
#include "tests/fuzz/target.h"

using namespace towers;

namespace {

constexpr std::size_t kBytes = std::size_t{data::kTestExamples} * data::kRecordBytes;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::filesystem::path file = fuzz::folder() / "test_batch.bin";
  std::string_view rest = fuzz::view(bytes, size);
  const std::size_t off = rest.empty() ? 0 : static_cast<unsigned char>(rest.front()) % 4;
  if (!rest.empty()) rest.remove_prefix(1);
  fuzz::write_file(file, "");
  std::filesystem::resize_file(file, off == 3 ? size : kBytes + off);  // zeros, which are right
  {
    std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
    while (rest.size() > 2) {
      const std::string_view place = rest.substr(0, 2);
      rest.remove_prefix(2);
      const std::size_t record =
          static_cast<unsigned char>(place[0]) * 256u + static_cast<unsigned char>(place[1]);
      const std::string_view piece = fuzz::take_piece(rest);
      const std::size_t at = record % data::kTestExamples * data::kRecordBytes;
      if (off == 3 || at + piece.size() > kBytes) continue;
      out.seekp(static_cast<std::streamoff>(at));
      out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    }
  }
  fuzz::expect_errors_alone([&] {
    const data::Dataset dataset = data::load_cifar10(fuzz::folder(), data::Split::test);
    if (dataset.size() != data::kTestExamples) fuzz::fail("another number of examples");
    for (std::size_t i = 0; i < dataset.size(); ++i)
      if (dataset.label(i) >= data::kClasses) fuzz::fail("a label out of range");
  });
  return 0;
}
