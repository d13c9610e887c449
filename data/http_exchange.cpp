#include "data/http_exchange.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <memory>

#include "data/gzip_reader.h"
#include "data/http_response.h"
#include "data/url.h"

namespace towers::data {
namespace {

constexpr std::size_t kHeadBytes = 512;         // enough to tell what a body is
constexpr std::size_t kIgnoredBytes = 1 << 20;  // of the body of a redirect

// One request and its answer. libcurl calls back through C frames: exceptions wait in error_.
class Exchange {
 public:
  enum class End { complete, start_over, redirect };

  Exchange(const Transfer& transfer, PartFile& part, const std::string& url, bool redirected)
      : transfer_(transfer), part_(part), url_(url), scheme_(scheme_of(url)) {
    if (!curl_) throw Error("libcurl cannot start: out of memory");
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_PROTOCOLS_STR, redirected ? "http,https" : "http,https,file");
    set(CURLOPT_USERAGENT, "towers");
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    if (const char* file = std::getenv("SSL_CERT_FILE")) set(CURLOPT_CAINFO, file);
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(transfer.limits.connect_seconds * 1000));
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(transfer.limits.stall_seconds));
    set(CURLOPT_LOW_SPEED_LIMIT, transfer.limits.stall_bytes_per_second);
    set(CURLOPT_ERRORBUFFER, reason_.data());
    set(CURLOPT_HEADERFUNCTION, &Exchange::on_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &Exchange::on_body);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_XFERINFOFUNCTION, &Exchange::on_progress);
    set(CURLOPT_XFERINFODATA, this);
    set(CURLOPT_NOPROGRESS, 0L);
    ask_for_the_rest();
  }

  End perform() {
    const CURLcode code = curl_easy_perform(curl_.get());
    if (error_) std::rethrow_exception(error_);
    if (start_over_) return End::start_over;
    if (is_redirect()) return End::redirect;
    if (head_.status == 416) return unsatisfied_range();
    // The body of an error page is not read to its end, so look at the status first.
    if (head_.status >= 300) fail_by_status();
    if (code != CURLE_OK) fail_by_code(code);
    if (!body_begun_) throw TransferError("the answer is empty", scheme_ != "file");
    if (part_.size() < std::max(total_, transfer_.bytes))
      throw TransferError("the server ended the transfer early", true);
    return End::complete;
  }

  // Where the server sent us on to, resolved against the address asked.
  std::string redirect_target() const {
    char* target = nullptr;
    curl_easy_getinfo(curl_.get(), CURLINFO_REDIRECT_URL, &target);
    return target ? target : "";
  }

 private:
  template <typename Value>
  void set(CURLoption option, Value value) {
    if (curl_easy_setopt(curl_.get(), option, value) != CURLE_OK)
      throw Error("libcurl refuses option " + std::to_string(option) +
                  ": it is too old or built without what a download needs");
  }

  void ask_for_the_rest() {
    if (part_.size() == 0 || scheme_ == "file") return;
    asked_from_ = part_.size();
    set(CURLOPT_RANGE, (std::to_string(asked_from_) + "-").c_str());
    const PartOrigin& origin = part_.origin();
    const std::string& validator = origin.etag.empty() ? origin.last_modified : origin.etag;
    if (validator.empty()) return;
    headers_.reset(curl_slist_append(nullptr, ("If-Range: " + validator).c_str()));
    set(CURLOPT_HTTPHEADER, headers_.get());
  }

  template <typename Function>
  std::size_t guarded(std::size_t size, Function function) {
    try {
      return function() ? size : size + 1;  // another number than `size` ends the transfer
    } catch (...) {
      error_ = std::current_exception();
      return size + 1;
    }
  }

  static std::size_t on_header(char* data, std::size_t, std::size_t size, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    return exchange.guarded(size, [&] {
      exchange.head_.add_line({data, size});
      return true;
    });
  }

  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    return exchange.guarded(size, [&] {
      return exchange.take({reinterpret_cast<const std::byte*>(data), size});
    });
  }

  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    auto& exchange = *static_cast<Exchange*>(self);
    if (!exchange.body_begun_ || !exchange.transfer_.progress) return 0;
    return static_cast<int>(exchange.guarded(0, [&] {
      exchange.transfer_.progress(exchange.part_.size(), exchange.total_);
      return true;
    }));
  }

  // False ends the transfer.
  bool take(std::span<const std::byte> bytes) {
    if (head_.status >= 300) {
      // libcurl works out where a redirect leads only after its (usually tiny) body.
      ignored_ += bytes.size();
      return head_.status < 400 && ignored_ < kIgnoredBytes;
    }
    if (bytes.empty()) return true;
    if (!body_begun_ && !begin_body(bytes)) return false;
    body_begun_ = true;
    const std::uint64_t limit = transfer_.bytes > 0 ? transfer_.bytes : transfer_.limits.bytes;
    if (part_.size() + bytes.size() > limit)
      throw TransferError("the server sends more than " + std::to_string(limit) + " bytes", false);
    part_.append(bytes);
    return true;
  }

  bool begin_body(std::span<const std::byte> bytes) {
    curl_off_t length = -1;
    curl_easy_getinfo(curl_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (head_.status == 206) return continue_part();
    refuse_other_content(bytes);
    total_ = length > 0 ? static_cast<std::uint64_t>(length) : 0;
    refuse_other_size();
    if (asked_from_ > 0 && transfer_.message)
      transfer_.message("the server sends the file from its beginning: " +
                        std::to_string(asked_from_) + " bytes are fetched again");
    part_.restart(
        {without_credentials(transfer_.url), head_.strong_etag(), head_.last_modified, total_});
    return true;
  }

  // Only the rest of the same file may be appended.
  bool continue_part() {
    const auto& range = head_.content_range;
    const PartOrigin& origin = part_.origin();
    if (asked_from_ == 0 || !range || range->unsatisfied)
      throw TransferError("the server answers with a part that was not asked for", true);
    total_ = range->total.value_or(0);
    const auto differs = [](const std::string& a, const std::string& b) {
      return !a.empty() && !b.empty() && a != b;
    };
    const bool same = range->first == asked_from_ && !differs(origin.etag, head_.strong_etag()) &&
                      !differs(origin.last_modified, head_.last_modified) &&
                      (origin.total == 0 || total_ == 0 || origin.total == total_);
    if (!same) {
      start_over("the file on the server has changed");
      return false;
    }
    refuse_other_size();
    return true;
  }

  End unsatisfied_range() {
    const auto& range = head_.content_range;
    if (range && range->total == part_.size() && asked_from_ > 0) return End::complete;
    if (asked_from_ == 0) fail_by_status();
    start_over("the server has no bytes behind those that are here");
    return End::start_over;
  }

  void start_over(const std::string& why) {
    if (transfer_.message) transfer_.message(why + ": starting from the beginning");
    part_.restart({});
    start_over_ = true;
  }

  void refuse_other_content(std::span<const std::byte> bytes) const {
    std::string content = describe_content(bytes.first(std::min(bytes.size(), kHeadBytes)));
    if (content == "gzip" || (bytes.size() < 2 && bytes[0] == std::byte{0x1f})) return;
    if (head_.content_type.find("html") != std::string::npos) content = "a web page (HTML)";
    throw TransferError("the server sends " + content +
                            " instead of a gzip archive; a proxy or a login page may be in the way",
                        false);
  }

  void refuse_other_size() const {
    if (transfer_.bytes > 0 && total_ > 0 && total_ != transfer_.bytes)
      throw TransferError("the server's file has " + std::to_string(total_) +
                              " bytes instead of the archive's " + std::to_string(transfer_.bytes),
                          false);
    if (total_ > transfer_.limits.bytes)
      throw TransferError("the server's file has " + std::to_string(total_) + " bytes, more than " +
                              std::to_string(transfer_.limits.bytes) + " are allowed",
                          false);
  }

  bool is_redirect() const {
    return head_.status >= 300 && head_.status < 400 && !redirect_target().empty();
  }

  [[noreturn]] void fail_by_status() const {
    curl_off_t wait = 0;
    curl_easy_getinfo(curl_.get(), CURLINFO_RETRY_AFTER, &wait);
    std::string reason = "the server answers " + describe_status(head_.status);
    if (head_.status == 407) reason += " (give name and password in http_proxy or https_proxy)";
    throw TransferError(reason, is_transient_status(head_.status), static_cast<double>(wait));
  }

  [[noreturn]] void fail_by_code(CURLcode code) const {
    std::string reason = reason_[0] ? reason_.data() : curl_easy_strerror(code);
    bool transient = true;
    switch (code) {
      case CURLE_PEER_FAILED_VERIFICATION:
        reason += " (the server is not trusted; check this machine's clock and ca-certificates)";
        transient = false;
        break;
      case CURLE_SSL_CACERT_BADFILE:
        reason += " (install the package ca-certificates, or set SSL_CERT_FILE)";
        transient = false;
        break;
      case CURLE_UNSUPPORTED_PROTOCOL:
      case CURLE_URL_MALFORMAT:
      case CURLE_FILE_COULDNT_READ_FILE:
        transient = false;
        break;
      default:
        break;
    }
    throw TransferError(reason, transient);
  }

  const Transfer& transfer_;
  PartFile& part_;
  std::string url_, scheme_;
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl_{curl_easy_init(), &curl_easy_cleanup};
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers_{nullptr,
                                                                       &curl_slist_free_all};
  std::array<char, CURL_ERROR_SIZE> reason_{};
  ResponseHead head_;
  std::uint64_t asked_from_ = 0;  // start of the range asked for
  std::uint64_t total_ = 0;       // of the whole file; 0: unknown
  std::size_t ignored_ = 0;
  bool body_begun_ = false;
  bool start_over_ = false;
  std::exception_ptr error_;
};

// http may lead to https, never back, and nothing leads to files or other protocols.
void check_redirect(const std::string& from, const std::string& to) {
  const std::string before = scheme_of(from), after = scheme_of(to);
  if (after != "https" && !(after == "http" && before == "http"))
    throw TransferError("refused: " + without_credentials(from) + " redirects to " +
                            without_credentials(to) +
                            (after == "http" ? ", which is not encrypted" : ""),
                        false);
}

}  // namespace

void fetch(const Transfer& transfer, PartFile& part) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) throw Error("libcurl cannot start");
  std::string url = transfer.url;
  int redirects = 0;
  for (;;) {
    Exchange exchange(transfer, part, url, redirects > 0);
    const Exchange::End end = exchange.perform();
    if (end == Exchange::End::complete) return;
    if (end == Exchange::End::start_over) continue;  // at most once: there is no range to ask for
    const std::string target = exchange.redirect_target();
    if (++redirects > transfer.limits.redirects)
      throw TransferError("more than " + std::to_string(transfer.limits.redirects) +
                              " redirects, the last one to " + without_credentials(target),
                          false);
    check_redirect(url, target);
    url = target;
  }
}

}  // namespace towers::data
