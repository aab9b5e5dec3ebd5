#pragma once

#include <exception>
#include <new>

#include "client/src/errors.h"

namespace wb::client {

/// What the calling thread's last call came to, for wb_last_error_*.
wb_status Report(const Result<void>& outcome);
wb_status ReportOutOfMemory();

/// Runs the body of a C function: its outcome becomes the status and the thread's last error. No
/// exception gets out, but for the one that ends a cancelled thread.
template <typename Body>
wb_status Run(Body body) {
  try {
    return Report(body());
  } catch (const std::bad_alloc&) {
    return ReportOutOfMemory();
  } catch (const std::exception& error) {
    return Report(Error{WB_INTERNAL, error.what(), {}});
  }
}

}  // namespace wb::client
