#include "data/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "core/error.h"

namespace towers::data {
namespace {

constexpr std::string_view kTemporaryMark = ".tmp.";

const char* advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space there or use another folder";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; make it accessible to this user or use another folder";
    case ENOENT:
      return "; check the path";
    case EFBIG:
      return "; raise the limit on file sizes (ulimit -f)";
    case EMFILE:
    case ENFILE:
      return "; raise the limit on open files (ulimit -n)";
    case EIO:
      return "; check the disk";
    default:
      return "";
  }
}

// 0 or the errno.
int sync(const FileDescriptor& file) {
  while (::fsync(file.get()) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

// Where the file is to appear: at the end of a link, which stays. Renaming would put a plain file
// in a device's or a pipe's place.
std::filesystem::path final_path(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::is_symlink(path, error)
                                           ? std::filesystem::weakly_canonical(path, error)
                                           : path;
  const std::filesystem::path& found = error ? path : target;
  if (std::filesystem::exists(found, error) && !std::filesystem::is_regular_file(found, error) &&
      !std::filesystem::is_directory(found, error))
    throw Error("cannot write " + path.string() + ": it is not a plain file; name another one");
  return found;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  return parent.empty() ? "." : parent;
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

int FileDescriptor::release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

int FileDescriptor::close() {
  if (fd_ < 0) return 0;
  return ::close(release()) == 0 ? 0 : errno;
}

void throw_file_error(const std::string& action, const std::filesystem::path& path, int error) {
  throw Error("cannot " + action + " " + path.string() + ": " +
              std::generic_category().message(error) + advice(error));
}

FileDescriptor open_to_read(const std::filesystem::path& path) {
  // Without O_NONBLOCK a pipe would be waited for; of a plain file it changes nothing.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) throw_file_error("open", path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_file_error("open", path, errno);
  if (!S_ISREG(status.st_mode)) throw Error("cannot open " + path.string() + ": not a plain file");
  return file;
}

std::uint64_t file_size(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_file_error("read the size of", path, errno);
  return static_cast<std::uint64_t>(status.st_size);
}

void read_at(const FileDescriptor& file, const std::filesystem::path& path, std::uint64_t offset,
             std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t n = ::pread(file.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_file_error("read", path, errno);
    if (n == 0) throw Error(path.string() + " is truncated at byte " + std::to_string(offset));
    offset += static_cast<std::uint64_t>(n);
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

std::string read_whole_file(const std::filesystem::path& path) {
  const FileDescriptor file = open_to_read(path);
  std::string content(file_size(file, path), '\0');
  read_at(file, path, 0, std::as_writable_bytes(std::span(content)));
  return content;
}

void write_all(const FileDescriptor& file, const std::filesystem::path& path,
               std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_file_error("write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void sync_folder(const std::filesystem::path& dir) {
  const FileDescriptor folder(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) throw_file_error("open", dir, errno);
  // Some network file systems know no such thing and say EINVAL.
  const int error = sync(folder);
  if (error != 0 && error != EINVAL) throw_file_error("sync", dir, error);
}

std::filesystem::path path_below(const std::filesystem::path& folder,
                                 const std::filesystem::path& path) {
  std::filesystem::path relative =
      std::filesystem::absolute(path).lexically_normal().lexically_relative(
          std::filesystem::absolute(folder / "").lexically_normal());
  if (relative.empty() || *relative.begin() == "..") return {};
  return relative;
}

std::filesystem::path temporary_name(const std::filesystem::path& path) {
  std::filesystem::path name = path;
  name += std::string(kTemporaryMark) + std::to_string(::getpid());
  return name;
}

std::string final_name_of_temporary(const std::string& name) {
  const std::size_t mark = name.rfind(kTemporaryMark);
  if (mark == std::string::npos) return {};
  const char* first = name.data() + mark + kTemporaryMark.size();
  const char* last = name.data() + name.size();
  unsigned pid = 0;
  const auto [end, error] = std::from_chars(first, last, pid);
  return error == std::errc() && end == last ? name.substr(0, mark) : std::string();
}

AtomicFile::AtomicFile(const std::filesystem::path& path)
    : path_(final_path(path)), temporary_(temporary_name(path_)) {
  std::error_code ignored;  // what is wrong else is found out by opening
  if (std::filesystem::is_directory(path_, ignored)) throw_file_error("write", path_, EISDIR);
  // A leftover of a dead process with our pid (in a container every run has the same) goes first;
  // O_EXCL then never follows a link that someone laid.
  ::unlink(temporary_.c_str());
  file_ = FileDescriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file_.get() < 0) throw_file_error("write", path_, errno);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write_all(file_, path_, bytes);
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text)));
}

void AtomicFile::sync() {
  if (const int error = data::sync(file_); error != 0) throw_file_error("write", path_, error);
  if (const int error = file_.close(); error != 0) throw_file_error("write", path_, error);
}

void AtomicFile::rename() {
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw_file_error("write", path_, errno);
  temporary_.clear();
}

void AtomicFile::commit() {
  sync();
  rename();
  sync_folder(folder_of(path_));
}

}  // namespace towers::data
