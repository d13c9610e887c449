# Decides whether the CUDA module is built, and how. nvcc is called by rules of our own: CMake's CUDA
# language ends the configuration where a toolkit does not work, wants its files in one folder, which
# PyPI's packages do not give, and knows no toolkit newer than itself.
#
# Sets cuda_built ("CUDA 13.0, cuDNN 9.19, ...", or empty) and cuda_not_built (why, where it is not).
include(CudaSearch)

set(TOWERS_CUDA AUTO CACHE STRING "Build the CUDA module: AUTO (where all it needs is found), ON or OFF")
set_property(CACHE TOWERS_CUDA PROPERTY STRINGS AUTO ON OFF)
set(TOWERS_CUDA_ARCHITECTURES "$ENV{CUDAARCHS}" CACHE STRING
    "Compute capabilities to compile for, as 80;90, or native; empty: 7.5 to the newest. CUDAARCHS in the environment presets it")
set(TOWERS_NVCC_FLAGS "" CACHE STRING "More flags for nvcc, for example -Xptxas=-v")

# Whether nvcc and the C++ compiler work together; sets cuda_not_built where they do not.
macro(towers_probe_nvcc)
  set(probed "${cuda_nvcc} ${cuda_version} ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_VERSION}")
  if(NOT TOWERS_NVCC_WORKS STREQUAL probed)
    set(folder ${CMAKE_BINARY_DIR}/CMakeFiles)
    file(WRITE ${folder}/probe.cu
         "#include <memory>\n#include <span>\n__global__ void kernel(float* x) { *x = 1; }\n")
    execute_process(COMMAND ${cuda_nvcc} -std=c++20 -ccbin ${CMAKE_CXX_COMPILER} -arch=sm_75
                            -c ${folder}/probe.cu -o ${folder}/probe.o
                    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(failed)
      string(REGEX MATCH "[^\n]*error[^\n]*" line "${output}")
      set(cuda_not_built
          "${cuda_nvcc} does not compile C++20 with ${CMAKE_CXX_COMPILER}: ${line}")
    else()
      set(TOWERS_NVCC_WORKS "${probed}" CACHE INTERNAL "what nvcc was seen to work with")
    endif()
  endif()
endmacro()

# Sets cuda_code_flags and cuda_capabilities, "7.5 8.0 ...". The newest has its PTX too, from which the
# driver makes code for GPUs that come later.
macro(towers_choose_architectures)
  set(chosen ${TOWERS_CUDA_ARCHITECTURES})
  if(chosen STREQUAL "native")
    set(cuda_code_flags -arch=native)
    set(cuda_capabilities "this machine's GPUs")
  else()
    if(NOT chosen)
      execute_process(COMMAND ${cuda_nvcc} --list-gpu-code OUTPUT_VARIABLE known)
      foreach(architecture 75 80 86 89 90 100 110 120)
        if(known MATCHES "sm_${architecture}\n")
          list(APPEND chosen ${architecture})
        endif()
      endforeach()
    endif()
    set(cuda_code_flags "")
    set(cuda_capabilities "")
    foreach(architecture ${chosen})
      list(APPEND cuda_code_flags
           -gencode=arch=compute_${architecture},code=sm_${architecture})
      string(REGEX REPLACE "(.)$" ".\\1" capability ${architecture})
      list(APPEND cuda_capabilities ${capability})
    endforeach()
    list(GET chosen -1 newest)
    list(APPEND cuda_code_flags -gencode=arch=compute_${newest},code=compute_${newest})
    list(JOIN cuda_capabilities " " cuda_capabilities)
  endif()
endmacro()

set(cuda_built "")
set(cuda_not_built "")
set(cuda_major "")
set(cuda_library_dirs "")
if(NOT TOWERS_CUDA)
  set(cuda_not_built "switched off (TOWERS_CUDA=${TOWERS_CUDA})")
elseif(TOWERS_SANITIZE)
  set(cuda_not_built "not made with sanitizers")
elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(cuda_not_built "made with GCC only, and this is ${CMAKE_CXX_COMPILER_ID}")
else()
  towers_find_cuda()
  if(cuda_lacks)
    list(JOIN cuda_lacks ", " lacks)
    list(JOIN TOWERS_CUDA_SEARCH " and " places)
    set(cuda_not_built "not found among ${places} packages: ${lacks}")
  else()
    towers_probe_nvcc()
  endif()
endif()
set(lacked OFF)
if(cuda_lacks)
  set(lacked ON)
endif()
set(TOWERS_CUDA_LACKED ${lacked} CACHE INTERNAL "something was missing: scripts/build looks again")
if(cuda_not_built)
  if(TOWERS_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TOWERS_CUDA=ON, but the CUDA module cannot be built: ${cuda_not_built}")
  endif()
  message(STATUS "CUDA module: not built: ${cuda_not_built}")
else()
  towers_choose_architectures()
  string(CONCAT cuda_built "CUDA ${cuda_version}, cuDNN ${cuda_cudnn_version}, cudnn-frontend "
         "${cuda_frontend_version}, compute capabilities ${cuda_capabilities}, from ${cuda_prefix}")
  message(STATUS "CUDA module: ${cuda_built}")
endif()

# towers_cuda_module(NAME SOURCES FILE... KERNELS FILE...): lib<NAME>.so beside the binary.
function(towers_cuda_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;KERNELS" ${ARGN})
  set(includes "")
  foreach(folder ${cuda_include_dirs})
    list(APPEND includes -isystem ${folder})
  endforeach()
  set(flags -std=c++20 -O3 -lineinfo -ccbin ${CMAKE_CXX_COMPILER} ${cuda_code_flags}
            -Xcompiler=-fPIC,-fvisibility=hidden,-fstack-protector-strong,-Wall,-Wextra,-Wno-unknown-pragmas
            -I${PROJECT_SOURCE_DIR} ${includes} ${TOWERS_NVCC_FLAGS})
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    list(APPEND flags -DNDEBUG)
  endif()
  if(TOWERS_WERROR)
    list(APPEND flags -Werror all-warnings)
  endif()
  set(objects "")
  foreach(kernel ${arg_KERNELS})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${kernel}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${cuda_nvcc} ${flags} -MD -MF ${object}.d
              -c ${CMAKE_CURRENT_SOURCE_DIR}/${kernel} -o ${object}
      DEPENDS ${kernel} DEPFILE ${object}.d
      COMMENT "Compiling CUDA object ${kernel}.o" VERBATIM)
    list(APPEND objects ${object})
  endforeach()

  add_library(${name} MODULE ${arg_SOURCES} ${objects})
  towers_settings(${name})
  target_compile_definitions(${name} PRIVATE TOWERS_NCCL_LIBRARY="${cuda_nccl_library}")
  target_include_directories(${name} SYSTEM PRIVATE ${cuda_include_dirs})
  target_link_libraries(${name} PRIVATE ${cuda_libraries} Threads::Threads ${CMAKE_DL_LIBS} rt)
  target_link_options(${name} PRIVATE LINKER:--no-undefined
                      LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/exports.map)
  set_target_properties(${name} PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/exports.map
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
    # Where it lies and where its libraries were found, installed as well.
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN;${cuda_library_dirs}")
endfunction()
