# SPDX-License-Identifier: Apache-2.0
# Where an installed ForgeKernel lies, and the Debian package: cmake --build build && (cd build && cpack -G DEB). docs/install.md.
#   bin/forge   lib/forge/{forge-runner,plugins,device}   share/forge/{operators,blueprints,knowledge,agents,include,docs/examples}
# find_paths() (src/util/fs.cc) looks there; nothing is compiled in, so a tree that is moved still works.
include(GNUInstallDirs)

# Made by the program itself, from the commands that it has.
set(made ${CMAKE_BINARY_DIR}/share)
add_custom_command(
  OUTPUT ${made}/forge.1 ${made}/forge.bash ${made}/_forge
  COMMAND ${CMAKE_COMMAND} -E make_directory ${made}
  COMMAND $<TARGET_FILE:forge> man > ${made}/forge.1
  COMMAND $<TARGET_FILE:forge> completion bash > ${made}/forge.bash
  COMMAND $<TARGET_FILE:forge> completion zsh > ${made}/_forge
  DEPENDS forge
  COMMENT "Manual page and completion"
  VERBATIM)
add_custom_target(forge_texts ALL DEPENDS ${made}/forge.1 ${made}/forge.bash ${made}/_forge)

install(TARGETS forge RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS forge-runner RUNTIME DESTINATION lib/forge)
get_property(targets DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTY BUILDSYSTEM_TARGETS)
foreach(target ${targets})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL MODULE_LIBRARY)  # the plugins: only what this configuration builds, not what an older one left in the folder
    get_target_property(folder ${target} LIBRARY_OUTPUT_DIRECTORY)
    get_filename_component(op ${folder} NAME)
    install(TARGETS ${target} LIBRARY DESTINATION lib/forge/plugins/${op})
  endif()
endforeach()
install(DIRECTORY ${CMAKE_BINARY_DIR}/plugins/ DESTINATION lib/forge/plugins FILES_MATCHING PATTERN "*.cubin" PATTERN "*.py")
install(DIRECTORY ${CMAKE_BINARY_DIR}/device/ DESTINATION lib/forge/device)

set(data ${CMAKE_INSTALL_DATADIR}/forge)
install(DIRECTORY operators blueprints knowledge agents include DESTINATION ${data})
install(DIRECTORY docs/examples DESTINATION ${data}/docs)  # what `forge new operator` begins with

install(FILES ${made}/forge.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${made}/forge.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME forge)
install(FILES ${made}/_forge DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
set(doc ${CMAKE_INSTALL_DATADIR}/doc/forgekernel)
# As in the repository, so that the pages' links lead on.
install(DIRECTORY docs DESTINATION ${doc} PATTERN examples EXCLUDE)
install(DIRECTORY results DESTINATION ${doc})
install(FILES README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${doc})
file(WRITE ${made}/copyright "Copyright: the ForgeKernel authors\nLicense: Apache-2.0, the text of which is in /usr/share/common-licenses/Apache-2.0\n")
install(FILES ${made}/copyright DESTINATION ${doc})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME forgekernel)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "makes compute kernels faster than the best known one, and proves it")
set(CPACK_PACKAGE_DESCRIPTION
    "Takes an expert library's kernel as a sealed reference, lets agents plan and\nbuild a faster one milestone by milestone, and judges every step behind a gate.")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
if(NOT CPACK_PACKAGE_CONTACT)
  set(CPACK_PACKAGE_CONTACT "ForgeKernel maintainers <forgekernel@example.org>")  # whoever distributes the package: -DCPACK_PACKAGE_CONTACT=...
endif()
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "g++")  # kernels are compiled where they run; the libraries come from shlibdeps
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl4, libjs-chart.js, libmicrohttpd12")  # models over HTTP; charts in reports; forge serve
include(CPack)
