# ccache as compiler launcher and mold as linker where they are installed; silently absent otherwise.
find_program(WB_CCACHE ccache)
if(WB_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${WB_CCACHE})
endif()
find_program(WB_MOLD mold)
if(WB_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
