#pragma once
// One request with libcurl: the connection, its limits, its errors. What an answer means is
// data/http_exchange.cpp's business.

#include <curl/curl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/cifar10_archive.h"

namespace towers::data {

class CurlRequest {
 public:
  // Called during perform(); what they throw comes out of it.
  struct Callbacks {
    std::function<void(std::string_view line)> header;
    std::function<bool(std::span<const std::byte>)> body;  // false ends the transfer
    std::function<void()> progress;                        // many times a second
  };
  struct Failure {
    std::string reason;
    bool transient = true;  // another try may succeed
  };

  // http and https, and file where `allow_files`. Redirects are not followed.
  CurlRequest(const std::string& url, bool allow_files, const TransferLimits& limits,
              Callbacks callbacks);

  // Asks for the bytes from `first` on, if the file still has that validator (may be empty).
  void ask_range(std::uint64_t first, const std::string& validator);

  // Nothing when the answer came to its end, whatever its status.
  std::optional<Failure> perform();

  std::uint64_t content_length() const;  // of the body; 0: not said. Also within callbacks
  std::string redirect_target() const;   // resolved against the address asked; empty: none
  double retry_after_seconds() const;

 private:
  template <typename Value>
  void set(CURLoption option, Value value);
  bool guarded(const std::function<bool()>& callback);
  static std::size_t on_header(char* data, std::size_t, std::size_t size, void* self);
  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self);
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
  Failure describe(CURLcode code) const;

  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl_;
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers_;
  Callbacks callbacks_;
  std::array<char, CURL_ERROR_SIZE> reason_{};
  std::exception_ptr error_;  // of a callback: it must not cross libcurl's C frames
};

}  // namespace towers::data
