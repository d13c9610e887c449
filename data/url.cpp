#include "data/url.h"

#include <curl/curl.h>

#include <memory>

namespace towers::data {
namespace {

using UrlHandle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

// Null when `url` is none.
UrlHandle parse(const std::string& url) {
  UrlHandle handle(curl_url(), &curl_url_cleanup);
  if (curl_url_set(handle.get(), CURLUPART_URL, url.c_str(), CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
    handle.reset();
  return handle;
}

std::string part_of(const UrlHandle& handle, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(handle.get(), part, &text, 0) != CURLUE_OK) return {};
  const std::string result = text;
  curl_free(text);
  return result;
}

}  // namespace

std::string scheme_of(const std::string& url) {
  const UrlHandle handle = parse(url);
  return handle ? part_of(handle, CURLUPART_SCHEME) : "";
}

std::string without_credentials(const std::string& url) {
  const UrlHandle handle = parse(url);
  if (!handle) {  // malformed, yet what stands before an @ may be a password
    const std::size_t at = url.rfind('@');
    return at == std::string::npos ? url : "..." + url.substr(at);
  }
  curl_url_set(handle.get(), CURLUPART_USER, nullptr, 0);
  curl_url_set(handle.get(), CURLUPART_PASSWORD, nullptr, 0);
  return part_of(handle, CURLUPART_URL);
}

}  // namespace towers::data
