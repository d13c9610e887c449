// An event file. An even first byte: the file as it is. An odd one: what its records hold, each
// with a two-byte length before it, behind the one that begins every such file; they get right
// lengths and checksums, which no fuzzer would guess.

#include <cstring>
#include <span>

#include "data/crc32c.h"
#include "data/event_reader.h"
#include "tests/fuzz/target.h"

using namespace towers;

namespace {

template <class T>
void append_number(std::string& file, T number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  file.append(bytes, sizeof number);
}

void append_checksum(std::string& file, std::string_view of) {
  append_number(file, data::mask_crc32c(data::crc32c(std::as_bytes(std::span(of)))));
}

void append_record(std::string& file, std::string_view content) {
  const std::size_t begin = file.size();
  append_number(file, std::uint64_t{content.size()});
  append_checksum(file, std::string(file.substr(begin)));
  file += content;
  append_checksum(file, content);
}

std::string file_of(std::string_view rest) {
  if (rest.empty()) return {};
  const bool raw = static_cast<unsigned char>(rest.front()) % 2 == 0;
  rest.remove_prefix(1);
  if (raw) return std::string(rest);
  std::string file;
  append_record(file,
                "\x1a\x0d"
                "brain.Event:2");  // field 3, file_version
  while (!rest.empty()) append_record(file, fuzz::take_piece(rest, 2));
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::filesystem::path path = fuzz::folder() / "events.out.tfevents.1.a";
  const std::string file = file_of(fuzz::view(bytes, size));
  fuzz::write_file(path, file);
  const bool begins = data::is_event_file(path);
  fuzz::expect_errors_alone([&] {
    data::EventReader reader(path);
    if (!begins) fuzz::fail("one says that it is an event file, the other that it is none");
    data::EventRecord record;
    std::size_t records = 0;
    while (reader.next(record))
      if (++records > file.size()) fuzz::fail("more records than bytes");
    if (reader.torn_bytes() > file.size()) fuzz::fail("more is torn than there is");
  });
  return 0;
}
