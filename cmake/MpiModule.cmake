# libtowers_mpi.so, which the binary loads where mpirun or srun started it as one of several processes. A
# run on one process needs no MPI.
set(TOWERS_MPI AUTO CACHE STRING "Build the MPI module: AUTO (where MPI is found), ON or OFF")
set_property(CACHE TOWERS_MPI PROPERTY STRINGS AUTO ON OFF)

set(mpi_built "")
set(mpi_not_built "")
set(mpi_lacked OFF)
if(NOT TOWERS_MPI)
  set(mpi_not_built "this build has none (TOWERS_MPI=${TOWERS_MPI})")
elseif(TOWERS_SANITIZE)
  set(mpi_not_built "builds with sanitizers have none")  # MPI itself is not built with them
else()
  find_package(MPI 3.0 QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    set(mpi_built "MPI ${MPI_C_VERSION}")
    file(STRINGS "${MPI_C_HEADER_DIR}/mpi.h" open_mpi REGEX "define OMPI_(MAJOR|MINOR|RELEASE)_VERSION ")
    if(open_mpi)
      string(REGEX MATCHALL " [0-9]+" open_mpi "${open_mpi}")
      string(REGEX REPLACE "[; ]+" "." open_mpi "${open_mpi}")
      string(REGEX REPLACE "^[.]" "Open MPI " mpi_built "${open_mpi}")
    endif()
  else()
    set(mpi_not_built "MPI was not found when this was built")
    set(mpi_lacked ON)
  endif()
endif()
set(TOWERS_MPI_LACKED ${mpi_lacked} CACHE INTERNAL "MPI was missing: scripts/build looks again")
if(mpi_not_built)
  if(TOWERS_MPI STREQUAL "ON")
    message(FATAL_ERROR "TOWERS_MPI=ON, but the MPI module cannot be built: ${mpi_not_built}")
  endif()
  message(STATUS "MPI module: not built: ${mpi_not_built}")
else()
  message(STATUS "MPI module: ${mpi_built}")
endif()

towers_stamp(stamp ${PROJECT_SOURCE_DIR}/core/collective.h ${CMAKE_CURRENT_SOURCE_DIR}/mpi_module.h)
configure_file(mpi_stamp.h.in ${CMAKE_CURRENT_BINARY_DIR}/mpi_stamp/towers_mpi_stamp.h @ONLY)
target_include_directories(towers_cluster PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/mpi_stamp)
target_compile_definitions(towers_cluster PRIVATE
  TOWERS_MPI_BUILT="${mpi_built}" TOWERS_MPI_NOT_BUILT="${mpi_not_built}")

if(mpi_built)
  add_library(towers_mpi MODULE mpi_collective.cpp mpi_module.cpp)
  towers_settings(towers_mpi)
  target_include_directories(towers_mpi PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/mpi_stamp)
  target_link_libraries(towers_mpi PRIVATE MPI::MPI_C Threads::Threads)
  target_link_options(towers_mpi PRIVATE LINKER:--no-undefined
                      LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/mpi_exports.map)
  set_target_properties(towers_mpi PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/mpi_exports.map
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endif()
