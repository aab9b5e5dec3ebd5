# `cmake --install build/<preset> --prefix P`: the two programs, and all that a program of someone
# else needs to use the client library: its headers, a CMake package, a pkg-config file. Nothing
# that is installed knows where it was built or installed: a prefix may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weightbridge)
set(package_build_dir ${CMAKE_BINARY_DIR}/package)

# wbctl finds the library beside it; weightbridged does not use it.
file(RELATIVE_PATH bin_to_lib /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CMAKE_INSTALL_LIBDIR})
set_target_properties(wbctl PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
install(TARGETS weightbridged wbctl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

install(TARGETS weightbridge EXPORT weightbridge
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY client/include/weightbridge DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")

install(EXPORT weightbridge NAMESPACE weightbridge:: FILE weightbridgeTargets.cmake
        DESTINATION ${package_dir})
configure_package_config_file(client/package/weightbridgeConfig.cmake.in
                              ${package_build_dir}/weightbridgeConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# As the soname: the C interface of a major version only grows.
write_basic_package_version_file(${package_build_dir}/weightbridgeConfigVersion.cmake
                                 COMPATIBILITY SameMajorVersion)
install(FILES ${package_build_dir}/weightbridgeConfig.cmake
              ${package_build_dir}/weightbridgeConfigVersion.cmake
        DESTINATION ${package_dir})

set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pkgconfig_to_prefix /prefix/${pkgconfig_dir} /prefix)
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix ${pkgconfig_to_prefix})
configure_file(client/package/weightbridge.pc.in ${package_build_dir}/weightbridge.pc @ONLY)
install(FILES ${package_build_dir}/weightbridge.pc DESTINATION ${pkgconfig_dir})

# What a reader of README looks for beside the programs.
install(FILES deploy/weightbridged.yaml deploy/examples/rollout.cc deploy/examples/trainer.c
              deploy/examples/trainer.cc
        DESTINATION ${CMAKE_INSTALL_DATADIR}/weightbridge)
