# What scripts/package hands to CPack: two Debian packages, and an archive that runs where it is unpacked.

set(CPACK_PACKAGE_NAME towers)
set(CPACK_PACKAGE_VENDOR "The towers authors")
set(CPACK_PACKAGE_CONTACT "The towers authors <towers@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB TGZ)
# Which components each of them takes is known only when it runs.
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/packaging/components.cmake)
set(CPACK_TOWERS_PROCESSOR ${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_TOWERS_MODULES "")
foreach(module cuda mpi)
  if(TARGET towers_${module})
    list(APPEND CPACK_TOWERS_MODULES ${module})
  endif()
endforeach()

set(CPACK_DEBIAN_TOWERS_PACKAGE_NAME towers)
set(CPACK_DEBIAN_TOWERS_DESCRIPTION
"A native trainer and evaluator of TensorFlow 1.x's multi-GPU CIFAR-10 example:
the same flags, step lines, checkpoints and event files. Towers run on the CPU,
and on NVIDIA GPUs with the package towers-cuda.")
set(CPACK_DEBIAN_TOWERS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOWERS_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_TOWERS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOWERS_FILE_NAME DEB-DEFAULT)

# CUDA's libraries come from NVIDIA's repository, or none at all: only recommended.
set(CPACK_DEBIAN_CUDA_PACKAGE_NAME towers-cuda)
set(CPACK_DEBIAN_CUDA_DESCRIPTION
"The GPU module of towers. Needs the driver, cuBLASLt, NVRTC and cuDNN 9.")
set(CPACK_DEBIAN_CUDA_PACKAGE_SECTION science)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "towers (= ${PROJECT_VERSION}), libstdc++6, libc6")
get_directory_property(cuda_major DIRECTORY cuda DEFINITION cuda_major)
if(cuda_major)
  set(CPACK_DEBIAN_CUDA_PACKAGE_RECOMMENDS "libcudnn9-cuda-${cuda_major}")
endif()
set(CPACK_DEBIAN_CUDA_FILE_NAME DEB-DEFAULT)

set(CPACK_DEBIAN_MPI_PACKAGE_NAME towers-mpi)
set(CPACK_DEBIAN_MPI_DESCRIPTION
"The module of towers for several processes, which mpirun or srun start.")
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "towers (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_MPI_FILE_NAME DEB-DEFAULT)

# The install scripts do not build: scripts/package does, and not the tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
include(CPack)
