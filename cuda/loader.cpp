#include "cuda/loader.h"

#include <dlfcn.h>

#include <towers_module_stamp.h>

#include <string_view>
#include <system_error>
#include <variant>

#include "cuda/visible_devices.h"

namespace towers::cuda {
namespace {

namespace fs = std::filesystem;

// Some are empty in some builds, which is what the check finds redundant.
// NOLINTBEGIN(readability-redundant-string-init)
constexpr std::string_view kBuilt = TOWERS_CUDA_BUILT;
constexpr std::string_view kNotBuilt = TOWERS_CUDA_NOT_BUILT;
constexpr std::string_view kLibraryDirs = TOWERS_CUDA_LIBRARY_DIRS;  // with colons between
constexpr std::string_view kBuiltMajor = TOWERS_CUDA_MAJOR;
// NOLINTEND(readability-redundant-string-init)
const std::string kMajor(kBuiltMajor.empty() ? std::string_view("13") : kBuiltMajor);

// The driver that first took this version of CUDA (NVIDIA's CUDA release notes).
std::string wanted_driver() {
  return "the NVIDIA driver " + std::string(kMajor == "12" ? "525" : "580") +
         " or newer is wanted for CUDA " + kMajor;
}

// Where the loader of shared libraries looks for those of others.
std::string looked(const Surroundings& s, bool own_folders) {
  std::string text = "looked in ";
  text += s.library_path.empty() ? "LD_LIBRARY_PATH (empty)" : "LD_LIBRARY_PATH=" + s.library_path;
  if (own_folders && !kLibraryDirs.empty()) text += ", " + std::string(kLibraryDirs);
  return text + " and the system's library folders";
}

std::string last_error() {
  const char* text = ::dlerror();
  return text == nullptr ? "unknown error" : text;
}

// The library that dlerror's "libcudnn.so.9: cannot open shared object file: ..." says is not
// there.
std::string missing_library(const std::string& error) {
  const std::size_t end = error.find(": cannot open shared object file");
  return end == std::string::npos ? std::string() : error.substr(0, end);
}

Reason no_library(const std::string& name, const Surroundings& s) {
  std::string wanted = "needed by libtowers_cuda.so";
  std::string install = "install it";
  if (name.starts_with("libcudnn")) {
    wanted = "cuDNN 9 for CUDA " + kMajor + " is wanted";
    install = "install NVIDIA's package libcudnn9-cuda-" + kMajor;
  } else if (name.starts_with("libcublas")) {
    wanted = "cuBLAS of CUDA " + kMajor + " is wanted";
    install = "install NVIDIA's package libcublas-" + kMajor + "-0 or newer";
  } else if (name.starts_with("libnvrtc")) {
    wanted = "NVRTC of CUDA " + kMajor + " is wanted";
    install = "install NVIDIA's package cuda-nvrtc-" + kMajor + "-0 or newer";
  }
  return {Lack::library, name + " cannot be loaded: " + wanted + "; " + looked(s, true) + "; " +
                             install + ", or build again with scripts/build --cuda"};
}

Reason no_driver(const Surroundings& s, const std::string& error) {
  const bool missing = missing_library(error) == s.driver_library;
  return {Lack::driver, s.driver_library + " cannot be loaded" +
                            (missing ? std::string() : " (" + error + ")") + ": " +
                            wanted_driver() + "; " + looked(s, false) +
                            "; install the driver (a container gets it with --gpus=all)"};
}

Reason no_module(const Surroundings& s) {
  std::string places;
  for (const fs::path& place : s.modules) places += (places.empty() ? "" : ", ") + place.string();
  return {Lack::module, "the GPU module is not there (" + places + ")" +
                            (kBuilt.empty() ? ": " + std::string(kNotBuilt) : std::string()) +
                            "; build it with scripts/build --cuda"};
}

Reason damaged(const std::string& error) {
  return {Lack::damaged, "the GPU module cannot be loaded: " + error +
                             "; build it again with scripts/build --cuda"};
}

struct Module {
  fs::path file;
  CreateBackend create;
};

std::variant<Module, Reason> load_module(const Surroundings& s) {
  for (const fs::path& file : s.modules) {
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    void* module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      const std::string error = last_error();
      const std::string library = missing_library(error);
      if (library.empty() || library == file) return damaged(error);
      return no_library(library, s);
    }
    // Never closed: its objects and the driver's threads may outlive any point where one could.
    void* function = ::dlsym(module, kModuleFunction);
    if (function == nullptr) return damaged(last_error());
    return Module{file, reinterpret_cast<CreateBackend>(function)};
  }
  return no_module(s);
}

Reason refused(const Module& module, const Surroundings& s, std::string error) {
  if (error.starts_with(kStaleModule))
    return {Lack::stale, module.file.string() + " is of another build (" +
                             error.substr(std::string_view(kStaleModule).size()) +
                             ") than this program (" + kModuleStamp +
                             "); build both again with scripts/build"};
  if (s.visible_devices) error += " (" + describe_visible_devices(s.visible_devices) + ")";
  return {Lack::backend, error};
}

}  // namespace

Loaded load_backend(const BackendOptions& options, const Surroundings& s) {
  if (parse_visible_devices(s.visible_devices).hides_all())
    return {nullptr, Reason{Lack::visible_device, describe_visible_devices(s.visible_devices) +
                                                      "; unset it, or name GPUs in it"}};
  // The driver first: where it is missing nothing else helps. CUDA loads it again, by this name.
  if (::dlopen(s.driver_library.c_str(), RTLD_LAZY | RTLD_LOCAL) == nullptr)
    return {nullptr, no_driver(s, last_error())};
  const auto loaded = load_module(s);
  if (const Reason* reason = std::get_if<Reason>(&loaded)) return {nullptr, *reason};
  const Module& module = std::get<Module>(loaded);
  Backend* backend = nullptr;
  char error[2048] = "";
  if (module.create(kModuleStamp, &options, &backend, error, sizeof error) != 0)
    return {nullptr, refused(module, s, error)};
  return {std::unique_ptr<Backend>(backend), std::nullopt};
}

std::optional<Reason> why_not_loadable(const Surroundings& s) {
  const auto loaded = load_module(s);
  if (const Reason* reason = std::get_if<Reason>(&loaded)) return *reason;
  return std::nullopt;
}

std::string module_build() {
  return kBuilt.empty() ? "not built: " + std::string(kNotBuilt) : std::string(kBuilt);
}

}  // namespace towers::cuda
