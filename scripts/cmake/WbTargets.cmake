# wb_add_library(NAME SRCS ... DEPS ...): one layer. Without SRCS it is header-only.
function(wb_add_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  if(ARG_SRCS)
    add_library(${name} STATIC ${ARG_SRCS})
    target_link_libraries(${name} PUBLIC wb_options ${ARG_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE wb_options ${ARG_DEPS})
  endif()
endfunction()

# wb_add_test(NAME SRCS ... DEPS ... [LABELS ...] [TIMEOUT seconds]): a Catch2 binary whose test
# cases are discovered one by one. All binaries share the one object that holds Catch2's main.
# TIMEOUT (default 60) bounds each test case on a quiet machine; what ctest ends is five times as
# late, as the tests' own bounds are under WB_TIME_SLACK=5. WB_TEST_ENV (a list NAME=VALUE) is set for all of them.
function(wb_add_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  math(EXPR timeout "5 * ${ARG_TIMEOUT}")
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE wb_options wb_test_main ${ARG_DEPS})
  set(properties TIMEOUT ${timeout})
  if(ARG_LABELS)
    list(APPEND properties LABELS "${ARG_LABELS}")
  endif()
  if(WB_TEST_ENV)
    list(APPEND properties ENVIRONMENT "${WB_TEST_ENV}")
  endif()
  catch_discover_tests(${name} TEST_PREFIX "${name}: " PROPERTIES ${properties})
endfunction()

# wb_without_tsan(FILE ...): sources of this folder that ThreadSanitizer does not instrument, for
# those that use gRPC's callback API and for the messages gRPC parses. Half of such code is in our
# files, the other half, with what orders it, in gRPC's library, which is not instrumented: the
# sanitizer sees the accesses and not their order. Locks taken in these files are seen all the same.
function(wb_without_tsan)
  if(WB_SANITIZE MATCHES "thread")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -fno-sanitize=thread)
  endif()
endfunction()
