# Sourced by scripts that build the GPU module: installs from PyPI what it needs and the machine lacks.

cuda_folder=$root/build/cuda  # a virtual environment, one of the places that cmake/CudaSearch.cmake looks in

# What the module needs and is not there: lines "name|PyPI package". Arguments go to cmake.
cuda_lacks() { cmake "$@" -P "$root/cmake/CudaSearch.cmake"; }

nvidia_gpu() {
  compgen -G '/dev/nvidia[0-9]*' >/dev/null || nvidia-smi -L 2>/dev/null | grep -q '^GPU '
}

# The newest CUDA that the driver takes, as 13.0; nothing without a driver.
driver_cuda() {
  nvidia-smi 2>/dev/null | sed -n 's/.*CUDA[A-Za-z ]* Version: *\([0-9]*\.[0-9]*\).*/\1/p' | head -n 1 || true
}

# need_cuda WISH INSTALL [CMAKE_ARGUMENT...]: sees to it that the module can be built. WISH yes: or ends
# with exit code 1; auto: where there is a GPU, or a toolkit that lacks a few headers alone, or says why
# not and returns. Sets cuda_installed=yes when something was installed.
need_cuda() {
  local wish=$1 install=$2 lacks names packages driver refused=return
  shift 2
  cuda_installed=no
  lacks=$(cuda_lacks "$@") || lacks=
  [ -n "$lacks" ] || return 0
  if [ "$wish" = yes ]; then
    refused='exit 1'
  elif ! nvidia_gpu && [ "${lacks%%|*}" != cudnn_frontend.h ]; then
    return 0
  fi
  names=$(cut -d '|' -f 1 <<<"$lacks" | paste -sd ',' | sed 's/,/, /g')
  mapfile -t packages < <(cut -d '|' -f 2 <<<"$lacks")
  if [ "$install" = no ]; then
    say "The GPU module cannot be built. Missing: $names
Install from PyPI into build/cuda by leaving out --no-install: ${packages[*]}"
    $refused
  fi
  driver=$(driver_cuda)
  if [[ "${packages[*]}" == *cuda-toolkit* && $driver =~ ^[0-9]+ && ${driver%%.*} -lt 13 ]]; then
    say "The NVIDIA driver takes CUDA up to $driver, and PyPI has no compiler of CUDA 12: update the driver (580 or
newer), or install NVIDIA's CUDA toolkit 12 with cuDNN 9 and NCCL. The GPU module is not built."
    $refused
  fi
  install_cuda "$names" "${packages[@]}" || {
    say "The GPU module cannot be built: PyPI's packages could not be installed (see above)."
    $refused
  }
  cuda_installed=yes
}

# install_cuda NAMES PACKAGE...: into build/cuda.
install_cuda() {
  local names=$1 size='a few MB' pip=("$cuda_folder/bin/pip" install --quiet --no-compile --no-cache-dir
    --disable-pip-version-check --retries 2 --timeout 30) packages=() dependencies=--no-deps package
  shift
  # cudnn-frontend is headers here; what its Python part needs is not wanted. Libraries that go with an
  # installed toolkit come without a second one.
  for package in "$@"; do
    case $package in
      nvidia-cudnn-frontend*) continue ;;
      cuda-toolkit*) dependencies='' size='about 2.3 GB' ;;
      nvidia-cudnn* | nvidia-cublas* | nvidia-nccl*) [ "$size" = 'about 2.3 GB' ] || size='up to 2 GB' ;;
    esac
    packages+=("$package")
  done
  python3 -c 'import ensurepip, venv' 2>/dev/null || need_packages yes cuda
  say "Installing from PyPI into build/cuda ($size): $names"
  # Not a python3 of the user's own, which may go.
  [ -x "$cuda_folder/bin/pip" ] || python3 -m venv "$cuda_folder" >&2 || return 1
  # shellcheck disable=SC2086  # nothing or one word
  [ ${#packages[@]} -eq 0 ] || "${pip[@]}" $dependencies "${packages[@]}" </dev/null >&2 || return 1
  for package in "$@"; do
    [[ $package != nvidia-cudnn-frontend* ]] || "${pip[@]}" --no-deps "$package" </dev/null >&2 || return 1
  done
}
