#pragma once
// A small published archive, a server for it, and a run of ensure_archive.

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "archive_builder.h"
#include "data/part_file.h"
#include "http_server.h"
#include "tests/support.h"

namespace towers::test {

// A variable of the environment for the length of a test.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = std::make_unique<std::string>(before);
    value.empty() ? ::unsetenv(name) : ::setenv(name, value.c_str(), 1);
  }
  ~Environment() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::unique_ptr<std::string> before_;
};

class DownloadFixture {
 public:
  DownloadFixture() {
    // Quick ends; a transfer that is not quick counts as stalled after the shortest time there is.
    options.first_backoff_seconds = 0.01;
    options.limits.connect_seconds = 2;
    options.limits.stall_seconds = 1;
    options.limits.stall_bytes_per_second = 1L << 30;
    options.message = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      messages_.push_back(line);
    };
    options.warning = [this](const std::string& line) { options.message("warning: " + line); };
  }

  // Starts the server; the archive's official address is there from now on.
  void serve(HttpServer::Handler handler, std::shared_ptr<const TlsIdentity> tls = nullptr) {
    server = std::make_unique<HttpServer>(std::move(handler), std::move(tls));
    set.spec.url = options.url = server->url("/" + set.spec.file);
  }
  // An ordinary server.
  void serve_well() {
    serve([this](const Request& request, int) { return serve_file(request, set.archive); });
  }

  // Empty, or the Error's message.
  std::string run() {
    try {
      data::ensure_archive(set.spec, data_dir, options);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }

  bool complete() const {
    for (const data::ArchiveMember& member : set.spec.members)
      if (read_file(data_dir / set.spec.folder / member.name) != set.content(member.name))
        return false;
    return true;
  }

  // All messages so far, one a line.
  std::string messages() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const std::string& line : messages_) text += line + "\n";
    return text;
  }

  // What lies in data_dir, sorted, separated by blanks.
  std::string listing() const {
    std::vector<std::string> names;
    std::error_code ignored;
    for (std::filesystem::directory_iterator entry(data_dir, ignored), end; entry != end; ++entry)
      names.push_back(entry->path().filename().string());
    std::sort(names.begin(), names.end());
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
    return text;
  }

  TemporaryFolder folder;
  std::filesystem::path data_dir = folder.path() / "data";
  SmallSet set;
  std::filesystem::path archive = data_dir / set.spec.file, part = data::part_path(archive);
  data::DownloadOptions options;
  std::unique_ptr<HttpServer> server;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
  // A proxy of the machine's must not come between a test and its server.
  Environment http_proxy_{"http_proxy", ""}, https_proxy_{"https_proxy", ""},
      upper_https_proxy_{"HTTPS_PROXY", ""}, all_proxy_{"all_proxy", ""},
      upper_all_proxy_{"ALL_PROXY", ""};
};

}  // namespace towers::test
