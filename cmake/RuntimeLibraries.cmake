# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAMS=a;b -DOUT=folder -P RuntimeLibraries.cmake: copies the shared libraries that a bare CUDA machine lacks.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${PROGRAMS} RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR lost
     PRE_INCLUDE_REGEXES "^lib(fmt|Zydis|Zycore|tomlplusplus|crypto|sqlite3)\\." PRE_EXCLUDE_REGEXES ".")
foreach(library ${found})
  file(COPY ${library} DESTINATION ${OUT} FOLLOW_SYMLINK_CHAIN)
endforeach()
