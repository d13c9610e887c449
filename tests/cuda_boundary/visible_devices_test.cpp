#include "cuda/visible_devices.h"

#include <catch2/catch.hpp>

namespace towers::cuda {
namespace {

using Entries = std::vector<std::string>;

}  // namespace

TEST_CASE("Without CUDA_VISIBLE_DEVICES nothing is hidden") {
  const VisibleDevices visible = parse_visible_devices(std::nullopt);
  CHECK_FALSE(visible.set);
  CHECK_FALSE(visible.hides_all());
  CHECK(describe_visible_devices(std::nullopt) == "CUDA_VISIBLE_DEVICES: not set");
}

TEST_CASE("CUDA_VISIBLE_DEVICES that begins with no GPU hides all of them") {
  // NoDevFiles is what Slurm writes for a job without GPUs.
  for (const char* value :
       {"", "-1", " ", "-1,0", "NoDevFiles", ",0", "none", "GPU-", "MIG-", "0x1"}) {
    INFO("'" << value << "'");
    CHECK(parse_visible_devices(value).hides_all());
    CHECK(describe_visible_devices(value).find("hides every GPU") != std::string::npos);
  }
  CHECK(describe_visible_devices("") == "CUDA_VISIBLE_DEVICES: empty (hides every GPU)");
}

TEST_CASE("CUDA_VISIBLE_DEVICES is a list in its own order") {
  CHECK(parse_visible_devices("0").entries == Entries{"0"});
  CHECK(parse_visible_devices("2,0,11").entries == Entries{"2", "0", "11"});
  CHECK(parse_visible_devices(" 1 , 0\t").entries == Entries{"1", "0"});
  CHECK(parse_visible_devices("GPU-8932f937-d72c,GPU-0").entries ==
        Entries{"GPU-8932f937-d72c", "GPU-0"});
  CHECK(parse_visible_devices("MIG-GPU-8932f937-d72c/1/0").entries ==
        Entries{"MIG-GPU-8932f937-d72c/1/0"});
  CHECK(describe_visible_devices("2,0") == "CUDA_VISIBLE_DEVICES: 2,0");
}

TEST_CASE("An entry that names no GPU hides itself and all after it") {
  for (const char* value : {"1,0,-1,2", "1,0,,2", "1,0,x", "1,0,"}) {
    INFO(value);
    CHECK(parse_visible_devices(value).entries == Entries{"1", "0"});
    CHECK(describe_visible_devices(value).find("hides all after it") != std::string::npos);
  }
  CHECK(parse_visible_devices("1,-1,2").refused == "-1");
}

TEST_CASE("A GPU that is named twice is told") {
  CHECK(parse_visible_devices("0,0").twice == "0");
  CHECK(parse_visible_devices("0,1,0").twice == "0");
  CHECK(parse_visible_devices("0,1").twice.empty());
  CHECK(describe_visible_devices("0,0").find("0 appears twice") != std::string::npos);
}

}  // namespace towers::cuda
