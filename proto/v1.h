#pragma once

#include "weightbridge/v1/layout.pb.h"
#include "weightbridge/v1/worker.pb.h"

namespace wb {

/// The generated messages of the wire, version 1.
namespace v1 = ::weightbridge::v1;

}  // namespace wb
