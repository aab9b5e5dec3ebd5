#pragma once

#include <filesystem>

#include "client/wbctl/exit_code.h"

namespace wb {

/// A worker process of a rehearsal: `wbctl rehearse-worker SPEC`, with its control channel at
/// kControlFd. Allocates the buffers of its layout, joins its daemon through the client library as
/// any trainer or engine would, and takes the steps it is told until it is told to leave.
///
/// What goes wrong in a step is the answer to it; it is for the rehearsal to end the process. Ends
/// by itself when the other end of its channel is closed or says nothing for too long.
[[nodiscard]] ExitCode RunWorkerProcess(const std::filesystem::path& spec);

}  // namespace wb
