# Run when the archive's libraries are installed: puts the copyright file of each one's Debian package
# into the folder `licences`. They lie in the folder `libraries`, and came from one of `architecture`.
find_program(DPKG_QUERY dpkg-query)
if(NOT DPKG_QUERY)
  message(WARNING "no dpkg-query here: the copied libraries come without their licences")
  return()
endif()
file(GLOB patterns RELATIVE ${libraries} ${libraries}/*.so*)
list(FILTER patterns EXCLUDE REGEX "^libtowers_")
list(TRANSFORM patterns PREPEND "*${architecture}/")
execute_process(COMMAND ${DPKG_QUERY} -S ${patterns} OUTPUT_VARIABLE owners ERROR_VARIABLE complaints)
if(complaints)
  message(WARNING "libraries without a licence:\n${complaints}")
endif()
# Lines are "PACKAGE:ARCHITECTURE: PATH", or without the architecture.
string(REGEX MATCHALL "[^\n]+" owners "${owners}")
list(TRANSFORM owners REPLACE "[:,].*" "")
list(APPEND owners libcli11-dev nlohmann-json3-dev)  # of these the program has the headers compiled in
list(REMOVE_DUPLICATES owners)
file(MAKE_DIRECTORY ${licences})
foreach(package IN LISTS owners)
  # Packages of one source share the file by a link.
  file(REAL_PATH /usr/share/doc/${package}/copyright file)
  if(EXISTS ${file})
    configure_file(${file} ${licences}/${package} COPYONLY)
  else()
    message(WARNING "the licence of ${package} is not on this machine")
  endif()
endforeach()
# What these files refer to.
file(COPY /usr/share/common-licenses DESTINATION ${licences})
