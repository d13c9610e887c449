#include "data/part_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>

#include "data/gzip_reader.h"
#include "data/url.h"

namespace towers::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInfoVersion = "towers part 1";

fs::path info_path(const fs::path& final_path) {
  return final_path.string() + ".part.info";
}

// One value a line, each of which may be empty; a file that was torn or is foreign counts as none.
PartOrigin load_origin(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  std::ifstream in(path);
  PartOrigin origin;
  std::string version, total, end;
  std::getline(in, version);
  std::getline(in, origin.url);
  std::getline(in, origin.etag);
  std::getline(in, origin.last_modified);
  std::getline(in, total);
  std::getline(in, end);
  if (!in || version != kInfoVersion || end != "end" ||
      total.find_first_not_of("0123456789") != std::string::npos || total.empty() ||
      total.size() > 18)
    return {};
  origin.total = std::stoull(total);
  return origin;
}

bool starts_as_gzip(const FileDescriptor& file) {
  std::array<std::byte, 2> start{};
  const ssize_t got = ::pread(file.get(), start.data(), start.size(), 0);
  return got == static_cast<ssize_t>(start.size()) && describe_content(start) == "gzip";
}

}  // namespace

fs::path part_path(const fs::path& final_path) {
  return final_path.string() + ".part";
}

PartFile::PartFile(const fs::path& final_path, const std::string& url, bool digest_known)
    : final_path_(final_path),
      path_(part_path(final_path)),
      info_path_(info_path(final_path)),
      digest_known_(digest_known) {
  file_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file_.get() < 0) throw_file_error("create", path_, errno);
  size_ = file_size(file_, path_);
  inherited_ = size_ > 0;
  origin_ = load_origin(info_path_);
  if (origin_.url != without_credentials(url))
    origin_ = {};  // another server's validators mean nothing here
  if (size_ > 0 && !(resumable() && starts_as_gzip(file_))) restart({});
}

void PartFile::restart(const PartOrigin& origin) {
  if (::ftruncate(file_.get(), 0) != 0) throw_file_error("write", path_, errno);
  size_ = 0;
  inherited_ = false;
  origin_ = origin;
  save_origin();
}

void PartFile::append(std::span<const std::byte> bytes) {
  write_all(file_, path_, bytes);
  size_ += bytes.size();
}

void PartFile::discard() {
  std::error_code ignored;
  fs::remove(info_path_, ignored);
  fs::remove(path_, ignored);
}

void PartFile::put_in_place() {
  if (::fsync(file_.get()) != 0) throw_file_error("write", path_, errno);
  if (::rename(path_.c_str(), final_path_.c_str()) != 0)
    throw_file_error("create", final_path_, errno);
  std::error_code ignored;
  fs::remove(info_path_, ignored);
  sync_folder(final_path_.parent_path());
}

void PartFile::save_origin() const {
  std::ofstream out(info_path_, std::ios::trunc);
  out << kInfoVersion << '\n'
      << origin_.url << '\n'
      << origin_.etag << '\n'
      << origin_.last_modified << '\n'
      << origin_.total << "\nend\n";
  out.close();
  if (!out) throw_file_error("write", info_path_, errno);
}

}  // namespace towers::data
