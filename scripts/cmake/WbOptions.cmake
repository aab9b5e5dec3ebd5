# wb_options: what every target of ours is compiled with. Generated protobuf code is not.
add_library(wb_options INTERFACE)
target_include_directories(wb_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(
  wb_options
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wold-style-cast
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            -Wcast-align
            -Wformat=2
            -Wimplicit-fallthrough)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(wb_options INTERFACE -Wthread-safety -Wthread-safety-beta
                                              -Wmissing-prototypes)
else()
  target_compile_options(wb_options INTERFACE -Wduplicated-cond -Wlogical-op)
endif()
if(WB_WERROR)
  target_compile_options(wb_options INTERFACE -Werror)
endif()

# Sanitizers apply to generated code too: one program is sanitized as a whole.
if(WB_SANITIZE)
  add_compile_options(-fsanitize=${WB_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${WB_SANITIZE})
endif()

# Coverage for the fuzzers in everything they reach; only their own programs link libFuzzer's main.
if(WB_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
