#include "data/http_exchange.h"

#include <algorithm>

#include "data/curl_request.h"
#include "data/gzip_reader.h"
#include "data/http_response.h"
#include "data/url.h"

namespace towers::data {
namespace {

constexpr std::size_t kHeadBytes = 512;         // enough to tell what a body is
constexpr std::size_t kIgnoredBytes = 1 << 20;  // of the body of a redirect

// One request for what the part lacks, and what its answer does to the part.
class Exchange {
 public:
  enum class End { complete, start_over, redirect };

  Exchange(const Transfer& transfer, PartFile& part, const std::string& url, bool redirected)
      : transfer_(transfer),
        part_(part),
        is_file_(scheme_of(url) == "file"),
        request_(url, !redirected, transfer.limits,
                 {[this](std::string_view line) { head_.add_line(line); },
                  [this](std::span<const std::byte> bytes) { return take(bytes); },
                  [this] { report(); }}) {
    if (part.size() == 0 || is_file_) return;
    asked_from_ = part.size();
    const PartOrigin& origin = part.origin();
    request_.ask_range(asked_from_, origin.etag.empty() ? origin.last_modified : origin.etag);
  }

  End perform() {
    const auto failure = request_.perform();
    if (start_over_) return End::start_over;
    if (is_redirect()) return End::redirect;
    if (head_.status == 416) return unsatisfied_range();
    // The body of an error page is not read to its end, so look at the status first.
    if (head_.status >= 300) fail_by_status();
    if (failure) throw TransferError(failure->reason, failure->transient);
    if (!body_begun_) throw TransferError("the answer is empty", !is_file_);
    if (part_.size() < std::max(total_, transfer_.bytes))
      throw TransferError("the server ended the transfer early", true);
    return End::complete;
  }

  std::string redirect_target() const { return request_.redirect_target(); }

 private:
  void report() const {
    if (body_begun_ && transfer_.progress) transfer_.progress(part_.size(), total_);
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
    if (head_.status == 206) return continue_part();
    refuse_other_content(bytes);
    total_ = request_.content_length();
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
    const char* cause = is_file_ ? "" : "; a proxy or a login page may be in the way";
    throw TransferError("it is " + content + " instead of a gzip archive" + cause, false);
  }

  void refuse_other_size() const {
    if (transfer_.bytes > 0 && total_ > 0 && total_ != transfer_.bytes)
      throw TransferError("it has " + std::to_string(total_) + " bytes instead of the archive's " +
                              std::to_string(transfer_.bytes),
                          false);
    if (total_ > transfer_.limits.bytes)
      throw TransferError("it has " + std::to_string(total_) + " bytes, more than " +
                              std::to_string(transfer_.limits.bytes) + " are allowed",
                          false);
  }

  bool is_redirect() const {
    return head_.status >= 300 && head_.status < 400 && !redirect_target().empty();
  }

  [[noreturn]] void fail_by_status() const {
    throw TransferError("the server answers " + describe_status(head_.status),
                        is_transient_status(head_.status), request_.retry_after_seconds());
  }

  const Transfer& transfer_;
  PartFile& part_;
  bool is_file_;
  CurlRequest request_;
  ResponseHead head_;
  std::uint64_t asked_from_ = 0;  // start of the range asked for
  std::uint64_t total_ = 0;       // of the whole file; 0: unknown
  std::size_t ignored_ = 0;
  bool body_begun_ = false;
  bool start_over_ = false;
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
