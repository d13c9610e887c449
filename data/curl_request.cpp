#include "data/curl_request.h"

#include <cstdlib>

#include "core/error.h"
#include "data/http_response.h"

namespace towers::data {

CurlRequest::CurlRequest(const std::string& url, bool allow_files, const TransferLimits& limits,
                         Callbacks callbacks)
    : curl_(nullptr, &curl_easy_cleanup),
      headers_(nullptr, &curl_slist_free_all),
      callbacks_(std::move(callbacks)) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  curl_.reset(started == CURLE_OK ? curl_easy_init() : nullptr);
  if (!curl_) throw Error("libcurl cannot start: out of memory");
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROTOCOLS_STR, allow_files ? "http,https,file" : "http,https");
  set(CURLOPT_USERAGENT, "towers");
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  const char* certificates = std::getenv("SSL_CERT_FILE");
  if (certificates && *certificates) set(CURLOPT_CAINFO, certificates);
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // the proxy's, before the server's
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect_seconds * 1000));
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(limits.stall_seconds));
  set(CURLOPT_LOW_SPEED_LIMIT, limits.stall_bytes_per_second);
  set(CURLOPT_ERRORBUFFER, reason_.data());
  set(CURLOPT_HEADERFUNCTION, &CurlRequest::on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &CurlRequest::on_body);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_XFERINFOFUNCTION, &CurlRequest::on_progress);
  set(CURLOPT_XFERINFODATA, this);
  set(CURLOPT_NOPROGRESS, 0L);
}

void CurlRequest::ask_range(std::uint64_t first, const std::string& validator) {
  set(CURLOPT_RANGE, (std::to_string(first) + "-").c_str());
  if (validator.empty()) return;
  headers_.reset(curl_slist_append(nullptr, ("If-Range: " + validator).c_str()));
  set(CURLOPT_HTTPHEADER, headers_.get());
}

std::optional<CurlRequest::Failure> CurlRequest::perform() {
  const CURLcode code = curl_easy_perform(curl_.get());
  if (error_) std::rethrow_exception(error_);
  if (code == CURLE_OK) return {};
  return describe(code);
}

std::uint64_t CurlRequest::content_length() const {
  curl_off_t length = -1;
  curl_easy_getinfo(curl_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  return length > 0 ? static_cast<std::uint64_t>(length) : 0;
}

std::string CurlRequest::redirect_target() const {
  char* target = nullptr;
  curl_easy_getinfo(curl_.get(), CURLINFO_REDIRECT_URL, &target);
  return target ? target : "";
}

double CurlRequest::retry_after_seconds() const {
  curl_off_t seconds = 0;
  curl_easy_getinfo(curl_.get(), CURLINFO_RETRY_AFTER, &seconds);
  return static_cast<double>(seconds);
}

template <typename Value>
void CurlRequest::set(CURLoption option, Value value) {
  if (curl_easy_setopt(curl_.get(), option, value) != CURLE_OK)
    throw Error("libcurl refuses option " + std::to_string(option) +
                ": it is too old, or built without what a download needs");
}

bool CurlRequest::guarded(const std::function<bool()>& callback) {
  try {
    return callback();
  } catch (...) {
    error_ = std::current_exception();
    return false;
  }
}

// libcurl ends the transfer when a callback takes another number of bytes than it was given.
std::size_t CurlRequest::on_header(char* data, std::size_t, std::size_t size, void* self) {
  auto& request = *static_cast<CurlRequest*>(self);
  const bool taken = request.guarded([&] {
    request.callbacks_.header({data, size});
    return true;
  });
  return taken ? size : size + 1;
}

std::size_t CurlRequest::on_body(char* data, std::size_t, std::size_t size, void* self) {
  auto& request = *static_cast<CurlRequest*>(self);
  const bool taken = request.guarded([&] {
    return request.callbacks_.body({reinterpret_cast<const std::byte*>(data), size});
  });
  return taken ? size : size + 1;
}

int CurlRequest::on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& request = *static_cast<CurlRequest*>(self);
  const bool go_on = request.guarded([&] {
    request.callbacks_.progress();
    return true;
  });
  return go_on ? 0 : 1;
}

CurlRequest::Failure CurlRequest::describe(CURLcode code) const {
  Failure failure{reason_[0] ? reason_.data() : curl_easy_strerror(code), true};
  long tunnel_status = 0;
  curl_easy_getinfo(curl_.get(), CURLINFO_HTTP_CONNECTCODE, &tunnel_status);
  if (tunnel_status >= 300) {
    failure.reason = "the proxy answers " + describe_status(static_cast<int>(tunnel_status));
    failure.transient = is_transient_status(static_cast<int>(tunnel_status));
    return failure;
  }
  if (failure.reason.starts_with("Unsupported proxy")) {
    failure.reason =
        "the proxy address in http_proxy, https_proxy or all_proxy is none that libcurl can use; "
        "write http://HOST:PORT, or unset it";
    failure.transient = false;
    return failure;
  }
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
      failure.reason +=
          " (the server is not trusted; check this machine's clock and ca-certificates)";
      failure.transient = false;
      break;
    case CURLE_SSL_CACERT_BADFILE:
      failure.reason += " (install the package ca-certificates, or set SSL_CERT_FILE)";
      failure.transient = false;
      break;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_FILE_COULDNT_READ_FILE:
      failure.transient = false;
      break;
    default:
      break;
  }
  return failure;
}

}  // namespace towers::data
