# SPDX-License-Identifier: Apache-2.0
# forge_layer: one static library per folder of src/. forge_program: <layer>/<program>_main.cc. forge_operators: the plugins.

add_library(forge_flags INTERFACE)
target_include_directories(forge_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_compile_options(forge_flags INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers
                       -Wno-restrict)  # false positives on std::string in GCC 12 (gcc.gnu.org PR 105651)
if(FORGE_WERROR)
  target_compile_options(forge_flags INTERFACE -Werror)
endif()
if(FORGE_SANITIZE)
  target_compile_options(forge_flags INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer -g1)
  target_link_options(forge_flags INTERFACE -fsanitize=address,undefined)
endif()
if(FORGE_TSAN)
  target_compile_options(forge_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer -g1)
  target_link_options(forge_flags INTERFACE -fsanitize=thread)
endif()
if(FORGE_FUZZ)
  target_compile_options(forge_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
                         -fno-omit-frame-pointer -g1)
  target_link_options(forge_flags INTERFACE -fsanitize=address,undefined)
endif()

function(forge_layer name)
  cmake_parse_arguments(ARG "" "" "DEPS;LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_main\\.cc$")
  if(NOT sources)
    add_library(forge_${name} INTERFACE)
    set(scope INTERFACE)
  else()
    add_library(forge_${name} STATIC ${sources})
    set(scope PUBLIC)
    set_target_properties(forge_${name} PROPERTIES UNITY_BUILD ${FORGE_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  endif()
  target_link_libraries(forge_${name} ${scope} forge_flags ${ARG_LINK})
  foreach(dep ${ARG_DEPS})
    target_link_libraries(forge_${name} ${scope} forge_${dep})
  endforeach()
endfunction()

function(forge_program program layer)
  string(REPLACE "-" "_" stem ${program})
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/${layer}/${stem}_main.cc)
    add_executable(${program} src/${layer}/${stem}_main.cc)
    target_link_libraries(${program} PRIVATE forge_${layer})
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  endif()
endfunction()

# operators/<op>/oracle.cc -> plugins/<op>/oracle.so; operators/<op>/experts/cpu/<name>.cc -> plugins/<op>/expert-<name>.so.
# An expert file names its libraries, or imported CMake targets, in a comment line "// link: dnnl OpenMP::OpenMP_CXX".
# operators/<op>/experts/cuda/<name>.cc -> plugins/<op>/cuda-expert-<name>.so, when the header of its line "// needs: cublasLt.h" is
# found: it opens its libraries at run time. operators/<op>/experts/cuda/<name>.py is copied to plugins/<op>/cuda-expert-<name>.py.
function(forge_operators)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  # The process that holds a Python expert lies beside our device code, whose vehicle it uses.
  configure_file(${CMAKE_SOURCE_DIR}/include/forge/python/forge_expert_runner.py ${CMAKE_BINARY_DIR}/device/forge_expert_runner.py COPYONLY)
  file(GLOB folders CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/operators/*/definition.json
       ${CMAKE_SOURCE_DIR}/knowledge/operators/*/definition.json)  # the latter: toy operators of probes
  foreach(definition ${folders})
    get_filename_component(folder ${definition} DIRECTORY)
    get_filename_component(op ${folder} NAME)
    set(out ${CMAKE_BINARY_DIR}/plugins/${op})
    add_library(oracle_${op} MODULE ${folder}/oracle.cc)
    target_link_libraries(oracle_${op} PRIVATE forge_flags)
    target_compile_options(oracle_${op} PRIVATE -O3 -mavx2 -mfma)
    set_target_properties(oracle_${op} PROPERTIES PREFIX "" OUTPUT_NAME oracle LIBRARY_OUTPUT_DIRECTORY ${out})
    file(GLOB experts CONFIGURE_DEPENDS ${folder}/experts/cpu/*.cc)
    foreach(expert ${experts})
      get_filename_component(name ${expert} NAME_WE)
      file(STRINGS ${expert} link_line REGEX "^// link:")
      string(REGEX REPLACE "^// link: *" "" libs "${link_line}")
      separate_arguments(libs)
      add_library(expert_${op}_${name} MODULE ${expert})
      target_link_libraries(expert_${op}_${name} PRIVATE forge_flags ${libs})
      target_compile_options(expert_${op}_${name} PRIVATE -O3)
      set_target_properties(expert_${op}_${name} PROPERTIES PREFIX "" OUTPUT_NAME expert-${name} LIBRARY_OUTPUT_DIRECTORY ${out})
    endforeach()
    forge_cuda_experts(${op} ${folder} ${out})
  endforeach()
endfunction()

function(forge_cuda_experts op folder out)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/experts/cuda/*.cc)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    file(STRINGS ${source} needs REGEX "^// needs:")
    string(REGEX REPLACE "^// needs: *" "" header "${needs}")
    string(MAKE_C_IDENTIFIER "FORGE_FOLDER_OF_${header}" found)
    find_path(${found} ${header} HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include)
    if(NOT ${found})
      message(STATUS "no ${header}: built without the expert ${name} of ${op}")
      continue()
    endif()
    add_library(cuda_expert_${op}_${name} MODULE ${source})
    target_link_libraries(cuda_expert_${op}_${name} PRIVATE forge_flags)
    target_include_directories(cuda_expert_${op}_${name} SYSTEM PRIVATE ${${found}} /usr/local/cuda/include)
    target_link_options(cuda_expert_${op}_${name} PRIVATE -static-libstdc++ -static-libgcc)  # a bare CUDA machine may lack them
    set_target_properties(cuda_expert_${op}_${name} PROPERTIES PREFIX "" OUTPUT_NAME cuda-expert-${name} LIBRARY_OUTPUT_DIRECTORY ${out})
  endforeach()
  file(GLOB scripts CONFIGURE_DEPENDS ${folder}/experts/cuda/*.py)
  foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    file(REAL_PATH ${script} source)  # one file may serve several operators through links
    configure_file(${source} ${out}/cuda-expert-${name}.py COPYONLY)
  endforeach()
endfunction()

# tests/unit/<layer>/*_test.cc -> <layer>_tests; tests/suites/*.sh and tests/exploits/ are driven by ctest too.
# tests/support/*.cc is for both: a library of the upper layers' tests, and <name>_main.cc a program <name> that suites start.
function(forge_tests)
  set(unit_seconds 600)  # after which a test is taken for hanging
  set(suite_seconds 900)
  if(FORGE_SANITIZE OR FORGE_TSAN)  # everything takes two to ten times as long
    set(unit_seconds 2400)
    set(suite_seconds 3600)
  endif()
  add_custom_target(forge_unit_tests)
  file(GLOB support CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.cc)
  list(FILTER support EXCLUDE REGEX "_main\\.cc$")
  add_library(test_support STATIC ${support})
  target_link_libraries(test_support PUBLIC forge_core)
  target_include_directories(test_support PUBLIC ${CMAKE_SOURCE_DIR}/tests)
  file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*_main.cc)
  foreach(program ${programs})
    get_filename_component(name ${program} NAME_WE)
    string(REGEX REPLACE "_main$" "" name ${name})
    add_executable(${name} ${program})
    target_link_libraries(${name} PRIVATE test_support)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  endforeach()
  foreach(layer util core device build store exchange runner vault gate knowledge model agents mcp evolve report cli)
    file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${layer}/*_test.cc)
    if(tests)
      add_executable(${layer}_tests ${tests})
      set_target_properties(${layer}_tests PROPERTIES UNITY_BUILD ${FORGE_UNITY} UNITY_BUILD_BATCH_SIZE 8)
      target_link_libraries(${layer}_tests PRIVATE forge_${layer} GTest::gtest_main)
      if(layer MATCHES "^(knowledge|model|agents|evolve|cli)$")
        target_link_libraries(${layer}_tests PRIVATE test_support)
      endif()
      target_compile_options(${layer}_tests PRIVATE -O0)  # what is tested is optimised; the tests themselves only cost compile time
      target_compile_definitions(${layer}_tests PRIVATE FORGE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" FORGE_BINARY_DIR="${CMAKE_BINARY_DIR}")
      add_dependencies(forge_unit_tests ${layer}_tests)
      add_test(NAME unit_${layer} COMMAND ${layer}_tests)
      set(environment "FORGE_HOME=${CMAKE_BINARY_DIR}/test-home")
      if(FORGE_TSAN AND layer STREQUAL runner)
        # A sealed runner may make a dozen calls and no thread; the sanitizer's run time makes others, and has one. The experts'
        # libraries were not built for it: it sees their barriers as races. CONTRIBUTING.md says what is left out.
        list(APPEND environment "GTEST_FILTER=-KernelTest.*:ExpertTest.*:PythonRunner.*:Experts.*")
      elseif(FORGE_TSAN AND layer STREQUAL gate)
        list(APPEND environment "GTEST_FILTER=-HopperOperators.TheBatteryIsRejected")  # hundreds of large answers: half an hour and more
      elseif(FORGE_TSAN AND layer STREQUAL device)
        list(APPEND environment "GTEST_FILTER=-CpuCeilings.*")  # the sanitizer watches every access of the loops that are timed
      endif()
      set_tests_properties(unit_${layer} PROPERTIES ENVIRONMENT "${environment}" TIMEOUT ${unit_seconds})
    endif()
  endforeach()
  forge_fuzz_replay()
  if(FORGE_TSAN)
    return()  # the suites run the real programs, with their runners
  endif()
  file(GLOB suites CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/suites/*.sh)
  foreach(suite ${suites})
    get_filename_component(name ${suite} NAME_WE)
    add_test(NAME suite_${name} COMMAND bash ${suite} ${CMAKE_BINARY_DIR})
    set_tests_properties(suite_${name} PROPERTIES TIMEOUT ${suite_seconds} RUN_SERIAL TRUE SKIP_RETURN_CODE 77)
  endforeach()
endfunction()

# tests/gpu/<name>.cc: programs that check a layer on a real card. Built by hand (ninja <name>), not run by ctest.
function(forge_gpu_checks)
  file(GLOB checks CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/gpu/*.cc)
  foreach(check ${checks})
    get_filename_component(name ${check} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${check})
    target_link_libraries(${name} PRIVATE forge_gate)
  endforeach()
endfunction()

# Device code of our own, when the CUDA toolkit is there: src/device/kernels/<name>.cu -> device/<name>.sm_90a.cubin,
# operators/<op>/oracle.cu -> plugins/<op>/oracle.sm_90a.cubin. Without nvcc the program builds all the same and says what it lacks.
function(forge_device_code)
  find_program(FORGE_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  if(NOT FORGE_NVCC)
    message(STATUS "no nvcc: built without device code; GPU targets will say so")
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/device/kernels/*.cu ${CMAKE_SOURCE_DIR}/operators/*/oracle.cu
       ${CMAKE_SOURCE_DIR}/knowledge/operators/*/oracle.cu)
  foreach(source ${sources})
    get_filename_component(folder ${source} DIRECTORY)
    get_filename_component(op ${folder} NAME)
    get_filename_component(name ${source} NAME_WE)
    set(out ${CMAKE_BINARY_DIR}/device)
    if(name STREQUAL oracle)
      set(out ${CMAKE_BINARY_DIR}/plugins/${op})
    endif()
    set(cubin ${out}/${name}.sm_90a.cubin)
    set(depfile ${CMAKE_BINARY_DIR}/depfiles/${op}-${name}.d)  # names the build folder, so it stays out of what is installed
    add_custom_command(
      OUTPUT ${cubin}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${out} ${CMAKE_BINARY_DIR}/depfiles
      COMMAND ${FORGE_NVCC} -cubin -gencode=arch=compute_90a,code=sm_90a -O3 -std=c++17 -I${CMAKE_SOURCE_DIR}/src
              -I${CMAKE_SOURCE_DIR}/include -MD -MF ${depfile} -o ${cubin} ${source}
      DEPENDS ${source}
      DEPFILE ${depfile}  # whatever it includes
      COMMENT "Device code ${cubin}"
      VERBATIM)
    list(APPEND cubins ${cubin})
  endforeach()
  add_custom_target(forge_device_code ALL DEPENDS ${cubins})
endfunction()

# lib/: the shared libraries that a bare CUDA machine lacks, so that a copied build folder runs there (RUNPATH: CMakeLists.txt).
function(forge_runtime_libraries)
  set(programs)
  foreach(program ${ARGN})
    list(APPEND programs $<TARGET_FILE:${program}>)
  endforeach()
  add_custom_target(
    forge_runtime_libraries ALL
    COMMAND ${CMAKE_COMMAND} "-DPROGRAMS=${programs}" -DOUT=${CMAKE_BINARY_DIR}/lib -P ${CMAKE_SOURCE_DIR}/cmake/RuntimeLibraries.cmake
    DEPENDS ${ARGN}
    VERBATIM)
endfunction()

# tests/fuzz/<target>.cc -> fuzz/<target>: libFuzzer's loop around one parser (FORGE_FUZZ), or all of them in the program fuzz_replay,
# which goes through tests/fuzz/corpus/ once. tests/fuzz/<name>_main.cc are programs beside them.
function(forge_fuzz_sources out)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*.cc)
  list(FILTER sources EXCLUDE REGEX "_main\\.cc$")
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

function(forge_hostile_runner)
  add_executable(hostile_runner tests/fuzz/hostile_runner_main.cc)  # without flags of ours: it is started for every input
  target_include_directories(hostile_runner PRIVATE src tests)
  target_compile_options(hostile_runner PRIVATE -O1)
  target_link_options(hostile_runner PRIVATE -static)
  set_target_properties(hostile_runner PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endfunction()

function(forge_fuzz_replay)
  forge_hostile_runner()
  forge_fuzz_sources(sources)
  add_executable(fuzz_replay ${sources} tests/fuzz/replay_main.cc)
  target_link_libraries(fuzz_replay PRIVATE forge_cli)
  target_include_directories(fuzz_replay PRIVATE tests)
  target_compile_options(fuzz_replay PRIVATE -O0)
  target_compile_definitions(fuzz_replay PRIVATE FORGE_BINARY_DIR="${CMAKE_BINARY_DIR}")
  set_target_properties(fuzz_replay PROPERTIES UNITY_BUILD ${FORGE_UNITY} UNITY_BUILD_BATCH_SIZE 10)
  add_dependencies(fuzz_replay hostile_runner)
  add_test(NAME fuzz_corpus COMMAND fuzz_replay ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus)
endfunction()

function(forge_fuzz_targets)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "libFuzzer is clang's: configure with --preset fuzz, or -DCMAKE_CXX_COMPILER=clang++")
  endif()
  forge_fuzz_sources(sources)
  add_custom_target(fuzz_targets)
  forge_hostile_runner()
  add_dependencies(fuzz_targets hostile_runner)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(fuzz_${name} EXCLUDE_FROM_ALL ${source})
    file(STRINGS ${source} libs REGEX "^// link:")  # the fewest: libFuzzer looks at all counters of a program for every input
    string(REGEX REPLACE "^// link: *" "" libs "${libs}")
    separate_arguments(libs)
    target_link_libraries(fuzz_${name} PRIVATE ${libs})
    target_include_directories(fuzz_${name} PRIVATE tests)
    target_compile_definitions(fuzz_${name} PRIVATE FORGE_LIBFUZZER FORGE_BINARY_DIR="${CMAKE_BINARY_DIR}")
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz OUTPUT_NAME ${name})
    add_dependencies(fuzz_targets fuzz_${name})
  endforeach()
endfunction()
