# Finds what the CUDA module is built from: a CUDA toolkit (12.0 or newer) with its compiler and
# cuBLASLt, cuDNN 9, NCCL's header and the headers of cudnn-frontend. Looks in the system's folders and
# in those of PyPI's packages (nvidia-*-cu12 with a folder for each, 13 with nvidia/cu13 for most).
#
#   cmake [-DTOWERS_CUDA_SEARCH=system;pypi] -P cmake/CudaSearch.cmake
#
# prints what lacks and the PyPI package that has it, with a | between, or nothing: scripts/build asks so.
# Included, it defines towers_find_cuda().
cmake_minimum_required(VERSION 3.22)

# Folders that may hold bin, include and lib, those of one installation together.
function(towers_cuda_prefixes out)
  set(prefixes "")
  if("system" IN_LIST TOWERS_CUDA_SEARCH)
    foreach(variable CUDAToolkit_ROOT CUDA_HOME CUDA_PATH)
      if(DEFINED ${variable})
        list(APPEND prefixes "${${variable}}")
      endif()
      if(DEFINED ENV{${variable}})
        list(APPEND prefixes "$ENV{${variable}}")
      endif()
    endforeach()
    find_program(on_path nvcc NO_CACHE)
    if(on_path)
      get_filename_component(bin "${on_path}" REALPATH)
      get_filename_component(bin "${bin}" DIRECTORY)
      get_filename_component(prefix "${bin}" DIRECTORY)
      list(APPEND prefixes "${prefix}")
    endif()
    list(APPEND prefixes /usr/local/cuda /opt/cuda /usr/local /usr)
  endif()
  if("pypi" IN_LIST TOWERS_CUDA_SEARCH)
    get_filename_component(root "${CMAKE_CURRENT_FUNCTION_LIST_DIR}" DIRECTORY)
    foreach(environment "${root}/build/cuda" "$ENV{VIRTUAL_ENV}" "$ENV{CONDA_PREFIX}")
      file(GLOB packages "${environment}/lib/python3*/site-packages")
      foreach(folder ${packages})
        # The headers of cudnn-frontend lie in site-packages/include.
        list(APPEND prefixes "${folder}/nvidia/cu13" "${folder}")
        foreach(name cuda_nvcc cuda_runtime cuda_cccl cuda_nvrtc cublas cudnn nccl)
          list(APPEND prefixes "${folder}/nvidia/${name}")
        endforeach()
      endforeach()
    endforeach()
  endif()
  list(REMOVE_DUPLICATES prefixes)
  set(${out} "${prefixes}" PARENT_SCOPE)
endfunction()

# Sets `out` to the folder of header NAME, or to the library file NAME, among the prefixes; else to "".
function(towers_cuda_look out kind name prefixes)
  set(found "found-NOTFOUND")
  if(kind STREQUAL "header")
    find_path(found ${name} PATHS ${prefixes} NO_DEFAULT_PATH NO_CACHE
              PATH_SUFFIXES include include/cccl targets/x86_64-linux/include
                            targets/x86_64-linux/include/cccl include/x86_64-linux-gnu)
  else()
    find_file(found ${name} PATHS ${prefixes} NO_DEFAULT_PATH NO_CACHE
              PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib lib/x86_64-linux-gnu)
  endif()
  if(NOT found)
    set(found "")
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# "9.19" from a header's lines #define PREFIX_MAJOR 9, #define PREFIX_MINOR 19.
function(towers_header_version out header prefix)
  file(STRINGS "${header}" lines REGEX "#define ${prefix}_(MAJOR|MINOR)(_VERSION)? ")
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  list(JOIN numbers . version)
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

# Sets cuda_lacks (a list of names, empty where all is there), cuda_packages (of PyPI, one for each), cuda_nvcc, cuda_version (13.0),
# cuda_cudnn_version, cuda_frontend_version, cuda_include_dirs, cuda_libraries (whole paths),
# cuda_library_dirs (where the shared ones lie), cuda_nccl_library and cuda_prefix (the compiler's installation).
function(towers_find_cuda)
  towers_cuda_prefixes(prefixes)
  set(lacks "")
  set(packages "")
  set(nvcc "")
  set(too_old "")
  foreach(prefix ${prefixes})
    set(candidate "${prefix}/bin/nvcc")
    if(NOT EXISTS "${candidate}")
      continue()
    endif()
    execute_process(COMMAND "${candidate}" --version OUTPUT_VARIABLE text ERROR_QUIET)
    if(text MATCHES "release ([0-9]+\\.[0-9]+)" AND CMAKE_MATCH_1 VERSION_GREATER_EQUAL 12.0)
      set(nvcc "${candidate}")
      set(version "${CMAKE_MATCH_1}")
      list(PREPEND prefixes "${prefix}")  # its own libraries before those of others
      set(cuda_prefix "${prefix}")
      break()
    endif()
    list(APPEND too_old "${candidate}")
  endforeach()
  if(NOT nvcc)
    list(JOIN too_old " and " too_old)
    if(too_old)
      set(too_old " than ${too_old}")
    endif()
    list(APPEND lacks "a CUDA toolkit (12.0 or newer)${too_old}")
    # The first release of its series: what any driver for the series runs. (The 12 series has no nvcc
    # on PyPI.)
    list(APPEND packages "cuda-toolkit[nvcc,cudart,cccl,cublas,nvrtc]==13.0.*")
    set(version 13.0)
  endif()
  string(REGEX REPLACE "\\..*" "" major "${version}")

  set(suffix "")  # of the names of PyPI's packages
  if(major EQUAL 12)
    set(suffix -cu12)
  endif()
  math(EXPR next "${major} + 1")
  set(series ">=${major},<${next}")

  set(include_dirs "")
  set(libraries "")
  set(library_dirs "")
  # Name in messages | header | library | PyPI's package.
  foreach(row
      "the CUDA runtime|cuda_runtime.h|libcudart_static.a|nvidia-cuda-runtime${suffix}${series}"
      "CUDA's C++ core libraries|nv/target||nvidia-cuda-cccl${suffix}${series}"
      "cuBLASLt ${major}|cublasLt.h|libcublasLt.so.${major}|nvidia-cublas${suffix}${series}"
      "NVRTC ${major}|nvrtc.h|libnvrtc.so.${major}|nvidia-cuda-nvrtc${suffix}${series}"
      "cuDNN 9|cudnn.h|libcudnn.so.9|nvidia-cudnn-cu${major}>=9,<10"
      "NCCL's header|nccl.h||nvidia-nccl-cu${major}>=2,<3"
      "cudnn_frontend.h|cudnn_frontend.h||nvidia-cudnn-frontend>=1,<2")
    string(REGEX MATCH "^(.*)[|](.*)[|](.*)[|](.*)$" row "${row}")
    set(what "${CMAKE_MATCH_1}")
    set(header "${CMAKE_MATCH_2}")
    set(library "${CMAKE_MATCH_3}")
    set(package "${CMAKE_MATCH_4}")
    towers_cuda_look(folder header ${header} "${prefixes}")
    set(file "none needed")
    if(library)
      towers_cuda_look(file library ${library} "${prefixes}")
    endif()
    if(NOT folder OR NOT file)
      list(APPEND lacks "${what}")
      list(APPEND packages "${package}")
      continue()
    endif()
    list(APPEND include_dirs "${folder}")
    if(library)
      list(APPEND libraries "${file}")
    endif()
    if(library MATCHES "[.]so")
      get_filename_component(directory "${file}" DIRECTORY)
      list(APPEND library_dirs "${directory}")
    endif()
    if(header STREQUAL "cudnn.h")
      towers_header_version(cuda_cudnn_version "${folder}/cudnn_version.h" CUDNN)
    elseif(header STREQUAL "cudnn_frontend.h")
      towers_header_version(cuda_frontend_version "${folder}/cudnn_frontend_version.h"
                            CUDNN_FRONTEND)
    endif()
  endforeach()
  towers_cuda_look(nccl library libnccl.so.2 "${prefixes}")  # loaded at run time, if ever
  if(NOT nccl)
    set(nccl libnccl.so.2)
  endif()
  list(REMOVE_DUPLICATES include_dirs)
  list(REMOVE_DUPLICATES library_dirs)
  # The compiler has these as they are; named, they would hide what it looks for after its own.
  list(REMOVE_ITEM include_dirs /usr/include /usr/local/include)
  set(cuda_lacks "${lacks}" PARENT_SCOPE)
  set(cuda_packages "${packages}" PARENT_SCOPE)
  set(cuda_nvcc "${nvcc}" PARENT_SCOPE)
  set(cuda_version "${version}" PARENT_SCOPE)
  set(cuda_major "${major}" PARENT_SCOPE)
  set(cuda_include_dirs "${include_dirs}" PARENT_SCOPE)
  set(cuda_libraries "${libraries}" PARENT_SCOPE)
  set(cuda_library_dirs "${library_dirs}" PARENT_SCOPE)
  set(cuda_nccl_library "${nccl}" PARENT_SCOPE)
  foreach(variable cuda_prefix cuda_cudnn_version cuda_frontend_version)
    set(${variable} "${${variable}}" PARENT_SCOPE)
  endforeach()
endfunction()

if(NOT DEFINED TOWERS_CUDA_SEARCH)
  set(TOWERS_CUDA_SEARCH system pypi)
endif()
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  towers_find_cuda()
  foreach(what package IN ZIP_LISTS cuda_lacks cuda_packages)
    execute_process(COMMAND ${CMAKE_COMMAND} -E echo "${what}|${package}")
  endforeach()
endif()
