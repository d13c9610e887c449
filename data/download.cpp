#include "data/download.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "data/digest.h"
#include "data/http_exchange.h"
#include "data/part_file.h"
#include "data/progress_meter.h"
#include "data/url.h"

namespace towers::data {
namespace {

namespace fs = std::filesystem;
using Seconds = std::chrono::duration<double>;

void tell(const DownloadOptions& options, const std::string& line) {
  if (options.message) options.message(line);
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

std::string ways_out(const fs::path& path) {
  return "; ways out: another address (--data_url, --data_sha256), a copy of your own put at " +
         path.string() + ", a folder that has the set (--data_dir), or --dataset=synthetic";
}

std::string kept_text(const PartFile& part) {
  if (!part.resumable()) return {};
  std::string text = "; " + std::to_string(part.size());
  if (part.origin().total > 0) text += " of " + std::to_string(part.origin().total);
  return text + " bytes are kept in " + part.path().string() + ", the next run goes on from there";
}

// One attempt after another until all bytes are in `part`.
void fetch_with_retries(const Transfer& transfer, PartFile& part, const fs::path& path,
                        const DownloadOptions& options) {
  double backoff = options.first_backoff_seconds;
  for (int attempt = 1;; ++attempt) {
    try {
      return fetch(transfer, part);
    } catch (const TransferError& error) {
      if (!error.transient || attempt >= options.attempts) {
        const std::string kept = kept_text(part);
        if (kept.empty()) part.discard();
        throw Error("cannot download " + without_credentials(transfer.url) + ": " + error.what() +
                    (attempt > 1 ? " (after " + std::to_string(attempt) + " attempts)" : "") +
                    kept + ways_out(path));
      }
      const double wait = std::min(std::max(backoff, error.retry_after_seconds),
                                   options.limits.longest_backoff_seconds);
      tell(options, "retrying in " + seconds_text(wait) + " (attempt " +
                        std::to_string(attempt + 1) + " of " + std::to_string(options.attempts) +
                        "): " + error.what());
      std::this_thread::sleep_for(Seconds(wait));
      backoff *= 2;
    }
  }
}

// Empty when the part is the whole, right file.
std::string fault_of(const ArchiveSpec& spec, const PartFile& part, const Expected& expected) {
  if (!expected.sha256.empty()) return difference(part.path(), expected);
  try {
    check_archive(spec, part.path());
    return {};
  } catch (const ArchiveError& error) {
    return "is broken (" + error.reason + ")";
  }
}

}  // namespace

std::string difference(const fs::path& path, const Expected& expected) {
  if (expected.bytes > 0) {
    const std::uint64_t bytes = file_size(open_to_read(path), path);
    if (bytes != expected.bytes)
      return "has " + std::to_string(bytes) + " bytes instead of " + std::to_string(expected.bytes);
  }
  if (expected.sha256.empty()) return {};
  const std::string sha256 = sha256_of_file(path);
  if (sha256 == expected.sha256) return {};
  return "has sha256 " + sha256 + " instead of " + expected.sha256 +
         (expected.md5.empty() ? "" : " (md5 " + expected.md5 + ")");
}

void download(const ArchiveSpec& spec, const fs::path& path, const Expected& expected,
              const DownloadOptions& options) {
  ProgressMeter meter("Downloading", spec.file, options);
  PartFile part(path, options.url, !expected.sha256.empty());
  Transfer transfer;
  transfer.url = options.url;
  transfer.bytes = expected.bytes;
  transfer.limits = options.limits;
  transfer.progress = [&](std::uint64_t done, std::uint64_t total) { meter.update(done, total); };
  transfer.message = options.message;
  for (;;) {
    const bool complete = expected.bytes > 0 && part.size() == expected.bytes;
    if (!complete) fetch_with_retries(transfer, part, path, options);
    const std::string fault = fault_of(spec, part, expected);
    if (fault.empty()) break;
    // The bytes of an earlier run may have been of another file: once more, all of it.
    if (part.inherited()) {
      tell(options,
           "the file continued from an earlier run " + fault + ": starting from the beginning");
      part.restart({});
      continue;
    }
    part.discard();
    throw Error("the file at " + without_credentials(options.url) +
                " is not the archive wanted: it " + fault + ways_out(path));
  }
  meter.update(part.size(), part.size(), true);
  part.put_in_place();
  tell(options,
       "Successfully downloaded " + spec.file + " " + std::to_string(part.size()) + " bytes.");
}

}  // namespace towers::data
