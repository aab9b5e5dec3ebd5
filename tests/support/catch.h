#pragma once

// The only file that includes Catch2, so that version 3 can come in one place.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
