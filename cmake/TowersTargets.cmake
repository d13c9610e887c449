# Helpers that keep every folder's CMakeLists.txt to a list of its files.

find_package(Threads REQUIRED)

# Settings of every target of ours: warnings, sanitizers, includes from the root ("core/net.h").
function(towers_settings target)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion)
  # GCC 12 warns of overlapping copies in std::string's own operator+ (its bug 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  # GCC warns of classes with members of types in unnamed namespaces, but not in the file it was given, which in
  # a unity build is another than theirs.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_UNITY_BUILD)
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  if(TOWERS_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # What people run is hardened (position-independent it is by the compilers' default); a sanitizer
  # would miss what fortified functions catch first.
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT TOWERS_SANITIZE)
    target_compile_options(${target} PRIVATE -fstack-protector-strong -U_FORTIFY_SOURCE
                                             -D_FORTIFY_SOURCE=2)
    target_link_options(${target} PUBLIC LINKER:-z,relro,-z,now)
  endif()
  if(TOWERS_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(TOWERS_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${TOWERS_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${TOWERS_SANITIZE})
  endif()
endfunction()

# towers_library(NAME FILE...): a static library of one folder.
function(towers_library name)
  add_library(${name} STATIC ${ARGN})
  towers_settings(${name})
  target_link_libraries(${name} PUBLIC Threads::Threads)
endfunction()

# towers_stamp(OUT HEADER...): version, compiler and a digest of these headers. A program and a module that it
# loads at run time have equal ones where the headers' classes have one layout on both sides.
function(towers_stamp out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  set(digests "")
  foreach(header ${ARGN})
    file(SHA256 ${header} digest)
    string(APPEND digests ${digest})
  endforeach()
  string(SHA256 digest "${digests}")
  string(SUBSTRING ${digest} 0 12 digest)
  set(${out} "${PROJECT_VERSION}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${digest}" PARENT_SCOPE)
endfunction()

# towers_test(NAME SOURCES FILE... LIBRARIES LIB... [LABELS LABEL...]): one Catch2 program; each test
# case becomes a ctest entry "NAME: case". A case that cannot run here prints a line that starts
# with "skipped: " and ctest shows it as skipped (Debian's Catch2 2.13 has no SKIP).
function(towers_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  towers_settings(${name})
  target_compile_options(${name} PRIVATE -O1)  # assertions: optimizing them costs minutes
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} towers_test_main)
  set(properties SKIP_REGULAR_EXPRESSION "skipped: " TIMEOUT 600)  # sanitizers on a slow machine
  if(arg_LABELS)
    list(APPEND properties LABELS "${arg_LABELS}")
  endif()
  catch_discover_tests(${name} TEST_PREFIX "${name}: " PROPERTIES ${properties})
endfunction()
