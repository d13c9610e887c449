// Checkpoints that are cut, changed or made up: an Error that names the file, never a crash or a
// huge allocation.

#include <catch2/catch.hpp>
#include <functional>

#include "data/checkpoint.h"
#include "data/crc32c.h"
#include "data/table.h"
#include "data/tensor_slice.h"
#include "protos/tensor_bundle.pb.h"
#include "tests/data/output_support.h"
#include "tests/support.h"

namespace towers::data {
namespace {

// A good checkpoint of two tensors to damage.
struct Specimen {
  Specimen() {
    write_checkpoint(prefix, {test::float_tensor("conv1/weights", {2, 3}, weights),
                              test::float_tensor("global_step", {}, std::span(weights).first(1))});
  }
  const test::TemporaryFolder folder;
  const std::filesystem::path prefix = folder.path() / "model.ckpt-7";
  const std::filesystem::path index = folder.path() / "model.ckpt-7.index";
  const std::filesystem::path data = folder.path() / "model.ckpt-7.data-00000-of-00001";
  const std::vector<float> weights{1, 2, 3, 4, 5, 6};

  std::string open_error() const {
    return test::error_of([this] { CheckpointReader reader(prefix); });
  }
  std::string read_error() const {
    return test::error_of([this] {
      std::vector<float> out(6);
      CheckpointReader(prefix).read("conv1/weights", out);
    });
  }
  // Opens with one entry's or the header's message changed.
  template <typename Message, typename Change>
  void change(const std::string& key, const Change& change) const {
    Table table = decode_table(test::read_file(index), index);
    Message message;
    message.ParseFromString(table[key]);
    change(message);
    table[key] = message.SerializeAsString();
    test::write_file(index, encode_table(table));
  }
  template <typename Change>
  std::string error_with_entry(const Change& how) const {
    change<proto::BundleEntryProto>("conv1/weights", how);
    return open_error();
  }
  template <typename Change>
  std::string error_with_header(const Change& how) const {
    change<proto::BundleHeaderProto>("", how);
    return open_error();
  }
};

using Entry = proto::BundleEntryProto;
using Header = proto::BundleHeaderProto;

TEST_CASE("A missing file of a checkpoint is named") {
  const Specimen good;
  std::filesystem::remove(good.data);
  CHECK(test::contains(good.open_error(), good.data.string() + ": No such file"));
  std::filesystem::remove(good.index);
  CHECK(test::contains(good.open_error(),
                       "there is no checkpoint " + good.prefix.string() + " (no file "));
  test::write_file(good.prefix, "an old format");
  CHECK(test::contains(good.open_error(), "not a checkpoint of the V2 format"));
}

TEST_CASE("An index cut anywhere is an error that names it") {
  const Specimen good;
  const std::string bytes = test::read_file(good.index);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    test::write_file(good.index, bytes.substr(0, size));
    INFO(size);
    CHECK(test::contains(good.open_error(), good.index.string() + " is damaged"));
  }
}

TEST_CASE("A changed bit of an index is found, or lies where it changes nothing") {
  const Specimen good;
  const std::string bytes = test::read_file(good.index);
  const Table table = decode_table(bytes, good.index);
  std::size_t harmless = 0;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    INFO("byte " << bit / 8);
    const std::string message = test::error_of([&] {
      const bool same = decode_table(changed, good.index) == table;
      CHECK(same);
      ++harmless;
    });
    CHECK((message.empty() || test::contains(message, good.index.string() + " is damaged")));
  }
  // The footer's padding, and LevelDB's table of filters, which is empty and never looked at.
  CHECK(harmless < 8 * 60);
}

TEST_CASE("Truncated data is found on opening, with the tensor's name") {
  const Specimen good;
  const std::string bytes = test::read_file(good.data);
  test::write_file(good.data, bytes.substr(0, 23));
  const std::string message = good.open_error();
  CHECK(test::contains(message, good.data.string() + " is truncated: tensor conv1/weights"));
}

TEST_CASE("Each changed byte of the data is found on reading, with its tensor's name") {
  const Specimen good;
  const std::string bytes = test::read_file(good.data);
  REQUIRE(bytes.size() == 28);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int change : {1, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ change);
      test::write_file(good.data, changed);
      INFO("byte " << i << " ^ " << change);
      CHECK(good.open_error().empty());
      const std::string step_error =
          test::error_of([&] { CheckpointReader(good.prefix).read_integer("global_step"); });
      const bool of_weights = i < 24;
      CHECK(test::contains(of_weights ? good.read_error() : step_error,
                           good.data.string() + " is damaged: the checksum of tensor " +
                               (of_weights ? "conv1/weights" : "global_step")));
      CHECK((of_weights ? step_error : good.read_error()).empty());
    }
  }
}

TEST_CASE(
    "Each changed byte of the state file is an error, or leads to the same or to no checkpoint") {
  const Specimen good;
  write_checkpoint_state(good.folder.path(), {good.prefix, {good.prefix}, {}});
  const auto state = good.folder.path() / "checkpoint";
  const std::string bytes = test::read_file(state);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    test::write_file(state, changed);
    INFO("byte " << bit / 8);
    std::string opened;
    const std::string message = test::error_of([&] {
      const auto latest = read_checkpoint_state(good.folder.path()).latest;
      opened = CheckpointReader(latest).prefix().string();
    });
    CHECK((opened == good.prefix.string() || test::contains(message, good.folder.path().string())));
  }
}

TEST_CASE("Data cut after opening is an error on reading") {
  const Specimen good;
  const CheckpointReader reader(good.prefix);
  std::filesystem::resize_file(good.data, 10);
  std::vector<float> out(6);
  CHECK(test::contains(test::error_of([&] { reader.read("conv1/weights", out); }),
                       good.data.string() + " is truncated"));
}

TEST_CASE("Headers that this reader must refuse") {
  const Specimen good;
  CHECK(test::contains(good.error_with_header([](Header& h) { h.set_endianness(Header::BIG); }),
                       "big-endian"));
  CHECK(test::contains(good.error_with_header([](Header& h) {
    h.set_endianness(Header::LITTLE);
    h.mutable_version()->set_min_consumer(2);
  }),
                       "format version 2"));
  for (const int shards : {0, -1, 100000}) {
    const std::string message = good.error_with_header([&](Header& h) {
      h.mutable_version()->set_min_consumer(0);
      h.set_num_shards(shards);
    });
    CHECK(test::contains(message, "shards in the header"));
  }
  test::write_file(good.index, encode_table({{"a", "b"}}));
  CHECK(test::contains(good.open_error(), "no header"));
  test::write_file(good.index, encode_table({{"", "\x0f"}}));
  CHECK(test::contains(good.open_error(), "unreadable header"));
}

TEST_CASE("Entries that contradict themselves or the files name the tensor") {
  const std::int64_t huge = std::int64_t{1} << 62;
  using Change = std::function<void(Entry&)>;
  const std::vector<Change> changes{
      [&](Entry& e) { e.mutable_shape()->mutable_dim(0)->set_size(huge); },  // product overflows
      [](Entry& e) { e.mutable_shape()->mutable_dim(0)->set_size(-2); },
      [](Entry& e) { e.mutable_shape()->set_unknown_rank(true); },
      [](Entry& e) { e.set_size(-24); },
      [&](Entry& e) { e.set_size(huge); },
      [&](Entry& e) {  // consistent, yet larger than the file
        e.mutable_shape()->mutable_dim(0)->set_size(huge / 12);
        e.set_size(huge / 12 * 12);
      },
      [](Entry& e) { e.set_offset(-1); },
      [&](Entry& e) { e.set_offset(huge); },
      [](Entry& e) { e.set_offset(5); },
      [](Entry& e) { e.set_shard_id(1); },
      [](Entry& e) { e.set_shard_id(-1); },
      [](Entry& e) { e.set_dtype(proto::DT_DOUBLE); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const Specimen good;
    INFO(i);
    CHECK(test::contains(good.error_with_entry(changes[i]), "tensor conv1/weights"));
  }
}

TEST_CASE("A type without a number, or of a later TensorFlow, is listed but not read") {
  const Specimen good;
  const auto type = GENERATE(7, 999);
  CHECK(good.error_with_entry([&](Entry& e) { e.set_dtype(static_cast<proto::DataType>(type)); })
            .empty());
  CHECK(CheckpointReader(good.prefix).find("conv1/weights")->type == DataType::other);
  CHECK(test::contains(good.read_error(), "is not read"));
}

TEST_CASE("Faulty slices name the tensor") {
  const auto add_slice = [](Entry& e, std::int64_t start, std::int64_t length, int rank) {
    auto* slice = e.add_slices();
    for (int d = 0; d < rank; ++d) {
      auto* extent = slice->add_extent();
      if (d == 0) extent->set_start(start);
      if (d == 0) extent->set_length(length);
    }
  };
  struct Fault {
    std::int64_t start, length;
    int rank;
  };
  for (const Fault fault : {Fault{0, 3, 2}, {-1, 1, 2}, {1, -5, 2}, {3, 0, 2}, {0, 1, 1}}) {
    const Specimen good;
    const std::string message = good.error_with_entry(
        [&](Entry& e) { add_slice(e, fault.start, fault.length, fault.rank); });
    CHECK(test::contains(message, "slice"));
    CHECK(test::contains(message, "tensor conv1/weights"));
  }
  const Specimen large;
  CHECK(test::contains(large.error_with_entry([&](Entry& e) {
    e.mutable_shape()->mutable_dim(0)->set_size(std::int64_t{1} << 40);
    add_slice(e, 0, 2, 2);
  }),
                       "tensor conv1/weights in checkpoint " + large.prefix.string() +
                           " has 13194139533312 bytes by its shape, all files together have 28"));
  const Specimen lacking;
  CHECK(lacking.error_with_entry([&](Entry& e) { add_slice(e, 0, 2, 2); }).empty());
  CHECK(test::contains(lacking.read_error(), "lacks one of its slices"));

  // One slice that is there, but covers half of the variable.
  const Specimen half;
  Table table = decode_table(test::read_file(half.index), half.index);
  Entry part;
  part.ParseFromString(table["conv1/weights"]);
  part.mutable_shape()->mutable_dim(0)->set_size(1);
  part.set_size(12);
  part.set_crc32c(mask_crc32c(crc32c(std::as_bytes(std::span(half.weights).first(3)))));
  table[slice_key("conv1/weights", {{0, 1}, {}})] = part.SerializeAsString();
  test::write_file(half.index, encode_table(table));
  half.change<Entry>("conv1/weights", [&](Entry& e) { add_slice(e, 0, 1, 2); });
  CHECK(test::contains(half.read_error(), "has slices that do not cover it"));

  // Its bytes damaged.
  test::write_file(half.data, std::string(28, '\0'));
  CHECK(test::contains(half.read_error(), "the checksum of tensor conv1/weights is wrong"));
}

TEST_CASE("Keys of slices are TensorFlow's") {
  const auto key =
      slice_key(std::string("a\0b\xff", 4), {{0, 2}, {-1, 63}, {64, 8191}, {8192, -1}});
  const std::string want(
      "\0"  // 0
      "a\0\xff"
      "b\xff\0\0\1"        // the name, escaped and ended
      "\1\4"               // four dimensions
      "\x80\x82"           // 0, 2
      "\x7f\xbf"           // -1, 63
      "\xc0\x40\xdf\xff"   // 64, 8191
      "\xe0\x20\x00\x7f",  // 8192, -1
      1 + 8 + 2 + 2 + 2 + 4 + 4);
  CHECK(key == want);
  CHECK(slice_owner(key) == std::string("a\0b\xff", 4));
}

TEST_CASE("CRC-32C has its well-known values") {
  const std::string digits = "123456789";
  CHECK(crc32c(std::as_bytes(std::span(digits))) == 0xe3069283u);
  const auto bytes = std::as_bytes(std::span(digits));
  CHECK(crc32c(bytes.subspan(4), crc32c(bytes.first(4))) == 0xe3069283u);
  CHECK(crc32c({}) == 0u);
  CHECK(mask_crc32c(0) == 0xa282ead8u);
}

}  // namespace
}  // namespace towers::data
