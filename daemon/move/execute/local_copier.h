#pragma once

#include "daemon/move/execute/attempt.h"
#include "daemon/move/execute/operation.h"

namespace wb {

/// Copies the chunks whose both ends are here, region to region. An attempt has only a few with
/// the copiers at once, so that packing for the wire is not kept waiting. Loop-confined.
class LocalCopier {
 public:
  LocalCopier(OperationTable& operations, int at_once)
      : operations_(operations), at_once_(at_once) {}

  /// The attempt has started to move.
  void Start(Attempt& attempt);
  void OnCopied(Operation& operation);

 private:
  void SubmitNext(Attempt& attempt);

  OperationTable& operations_;
  int at_once_;
};

}  // namespace wb
