# Where things go: `cmake --install`, and the packages that scripts/package makes of the same.
#
# Components: towers (the program and its files), cuda and mpi (the modules for
# GPUs and for several processes), bundle (copies of the shared
# libraries that the program uses, for the archive that runs without root; not installed otherwise).
include(GNUInstallDirs)

# Beside the modules, which the program looks for there, lie the bundled libraries. Their own
# needs are found there too, which only the older kind of path (RPATH, not RUNPATH) does.
set(towers_private_dir lib/towers)
file(RELATIVE_PATH private_from_bin /${CMAKE_INSTALL_BINDIR} /${towers_private_dir})
set_target_properties(towers PROPERTIES INSTALL_RPATH "$ORIGIN/${private_from_bin}")
target_link_options(towers PRIVATE LINKER:--disable-new-dtags)
install(TARGETS towers RUNTIME_DEPENDENCY_SET towers_libraries COMPONENT towers)

# The manual page and the shells' completion, as the program itself writes them.
set(shell_files towers.1 towers.bash _towers towers.fish)
list(TRANSFORM shell_files PREPEND ${CMAKE_CURRENT_BINARY_DIR}/share/)
add_custom_command(
  OUTPUT ${shell_files}
  COMMAND ${CMAKE_COMMAND} -E make_directory share
  COMMAND towers help man > share/towers.1
  COMMAND towers completion bash > share/towers.bash
  COMMAND towers completion zsh > share/_towers
  COMMAND towers completion fish > share/towers.fish
  WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
  DEPENDS towers)
add_custom_target(towers_shell_files ALL DEPENDS ${shell_files})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/share/towers.1
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT towers)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/share/towers.bash RENAME towers
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT towers)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/share/_towers
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT towers)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/share/towers.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT towers)

install(FILES README.md CHANGELOG.md THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT towers)
install(FILES LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT towers)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT towers)
install(DIRECTORY packaging/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT towers)

foreach(module cuda mpi)
  if(TARGET towers_${module})
    install(TARGETS towers_${module} LIBRARY DESTINATION ${towers_private_dir} COMPONENT ${module})
  endif()
endforeach()

# glibc stays the system's: it comes with the kernel interface and the loader, and cannot be mixed.
install(RUNTIME_DEPENDENCY_SET towers_libraries
        PRE_EXCLUDE_REGEXES "^(ld-linux|lib(c|m|dl|rt|pthread|resolv|mvec|util)\\.so)"
        POST_EXCLUDE_REGEXES "/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|mvec|util)\\.so[.0-9]*)$"
        LIBRARY DESTINATION ${towers_private_dir} COMPONENT bundle EXCLUDE_FROM_ALL)

# Their licences come along: the server that the archive is for may be no Debian.
set(prefix "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}")
install(CODE "set(libraries \"${prefix}/${towers_private_dir}\")
set(licences \"${prefix}/${CMAKE_INSTALL_DOCDIR}/licences\")
set(architecture /${CMAKE_LIBRARY_ARCHITECTURE})
include(\"${CMAKE_CURRENT_LIST_DIR}/BundledLicences.cmake\")"
        COMPONENT bundle EXCLUDE_FROM_ALL)

include(TowersPackages)
