#pragma once

namespace wb::test {

/// Leaves in this process's queue for shared memory what a sender leaves that is killed after it
/// has reserved its place there and before it has filled it. The form of the queue is UCX 1.13's
/// (mm_iface.h, uct_mm_fifo_ctl_t). False when no queue is found.
bool LeaveShmGap();

}  // namespace wb::test
