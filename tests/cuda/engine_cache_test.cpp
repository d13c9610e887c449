// The file of fastest engines, without CUDA.

#include "cuda/engine_cache.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "tests/support.h"

namespace towers::cuda {
namespace {

namespace fs = std::filesystem;
using namespace towers::test;

std::vector<std::string> said;
void take(const std::string& line) {
  said.push_back(line);
}

const std::string kHead = "towers: fastest cuDNN engines, 1\n";

// An environment variable for the length of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* former = std::getenv(name)) former_ = former;
    set(value);
  }
  ~Variable() { set(former_ ? former_->c_str() : nullptr); }

 private:
  void set(const char* value) {
    if (value != nullptr)
      setenv(name_, value, 1);
    else
      unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> former_;
};

TEST_CASE("engines are kept where XDG_CACHE_HOME says, else in ~/.cache") {
  const Variable home("HOME", "/home/someone");
  {
    const Variable cache("XDG_CACHE_HOME", "/var/cache/of");
    CHECK(engine_cache_file() == "/var/cache/of/towers/cudnn_engines");
  }
  for (const char* none : {static_cast<const char*>(nullptr), "", "relative"}) {
    const Variable cache("XDG_CACHE_HOME", none);
    CHECK(engine_cache_file() == "/home/someone/.cache/towers/cudnn_engines");
    const Variable homeless("HOME", nullptr);
    CHECK(engine_cache_file().empty());
  }
}

TEST_CASE("what one process keeps another finds") {
  said.clear();
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "not" / "there" / "yet";
  EngineCache first(file, take), second(file, take);
  CHECK(first.find("H200, forward") == std::nullopt);
  CHECK(second.find("H200, forward") == std::nullopt);
  first.keep("H200, forward", "eng38_k24=3");
  second.keep("H200, backward", "eng1");  // does not lose the first one's
  EngineCache third(file, take);
  CHECK(third.find("H200, forward") == "eng38_k24=3");
  CHECK(third.find("H200, backward") == "eng1");
  third.keep("H200, forward", "eng7");  // timed anew
  CHECK(EngineCache(file, take).find("H200, forward") == "eng7");
  CHECK(read_file(file) == kHead + "H200, backward\teng1\nH200, forward\teng7\n");
  // No temporary file stays.
  CHECK(std::distance(fs::directory_iterator(file.parent_path()), {}) == 1);
  CHECK(said.empty());
}

TEST_CASE("without a file engines are kept for the process") {
  said.clear();
  EngineCache cache({}, take);
  CHECK(cache.find("a") == std::nullopt);
  cache.keep("a", "b");
  CHECK(cache.find("a") == "b");
  CHECK(said.empty());
}

TEST_CASE("a damaged file's good lines are used, and it is written whole again") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "engines";
  struct Case {
    std::string text, rewritten;
  };
  for (const Case& c : {Case{"", ""}, Case{kHead + "good\teng1\nwithout\n", "good\teng1\n"},
                        Case{kHead + "good\teng1\ncut\ten", "good\teng1\n"},
                        Case{kHead + "\teng\nkey\t\nod\x01d\teng\ngood\teng1\n", "good\teng1\n"}}) {
    said.clear();
    write_file(file, c.text);
    EngineCache cache(file, take);
    CHECK(cache.find("good").has_value() == !c.rewritten.empty());
    CHECK(cache.find("cut") == std::nullopt);
    REQUIRE(said.size() == 1);
    CHECK(said[0].find(file.string()) == 0);
    cache.keep("new", "eng2");
    CHECK(read_file(file) == kHead + c.rewritten + "new\teng2\n");
  }
}

TEST_CASE("a foreign file is left alone") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "engines";
  for (const std::string& text :
       {std::string("towers: fastest cuDNN engines, 2\na\tb\n"), std::string("a letter\n"),
        std::string("no line"), kHead + std::string(2 << 20, 'x')}) {
    said.clear();
    write_file(file, text);
    EngineCache cache(file, take);
    CHECK(cache.find("a") == std::nullopt);
    CHECK(said.size() == 1);
    cache.keep("a", "eng1");
    CHECK(cache.find("a") == "eng1");
    CHECK(read_file(file) == text);
  }
}

TEST_CASE("where nothing can be written, and where a folder lies, engines are found all the same") {
  const TemporaryFolder folder;
  write_file(folder.path() / "file", "");
  fs::create_directory(folder.path() / "folder");
  for (const fs::path& file : {folder.path() / "file" / "below", folder.path() / "folder"}) {
    said.clear();
    EngineCache cache(file, take);
    CHECK(cache.find("a") == std::nullopt);
    cache.keep("a", "eng1");
    CHECK(cache.find("a") == "eng1");
    CHECK_FALSE(said.empty());
  }
  CHECK(fs::is_empty(folder.path() / "folder"));
}

TEST_CASE("what would break a line is not kept") {
  const TemporaryFolder folder;
  EngineCache cache(folder.path() / "engines", nullptr);
  cache.keep("a\tb", "eng1");
  cache.keep("a", "eng\n1");
  cache.keep("", "eng1");
  CHECK_FALSE(fs::exists(folder.path() / "engines"));
}

}  // namespace
}  // namespace towers::cuda
