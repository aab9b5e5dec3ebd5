#pragma once

#include <cstdint>
#include <span>

namespace wb::test {

// What strangers may send, taken from any bytes. Each case aborts where a promise does not hold: a
// fuzzer's crash, a test's failure. Each returns how much of it was accepted, for tests that want
// to know that a seed still reaches so far.

/// A chunk's header, as it is and with a seal that fits: what is accepted is written as it came.
int RunChunkHeaderCase(std::span<const std::uint8_t> bytes);

/// A configuration file: accepted within the limits, or refused with reasons.
int RunOptionsCase(std::span<const std::uint8_t> bytes);

/// Messages of two daemons' streams to the leader, and of the leader's to a daemon. Those to the
/// leader go on to it, with its intake of layouts, as the server does it. Pieces of
/// [what: 1 byte][length: 2, little endian][message]; `what` 0 and 1: a request of the first or
/// second daemon, 2: a reply, 3 and 4: the end of a daemon's stream, 5: a second passes.
int RunClusterCase(std::span<const std::uint8_t> bytes);

/// Packets of one worker to a local door, with descriptors; then it says no more, and the door has
/// nothing left of it. Pieces of [what: 1 byte][length: 2, little endian][packet]; `what` chooses
/// descriptors: none, one of two sealed memfds, one without seals, both.
int RunWorkerDoorCase(std::span<const std::uint8_t> bytes);

}  // namespace wb::test
