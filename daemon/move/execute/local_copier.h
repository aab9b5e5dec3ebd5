#pragma once

#include "daemon/move/execute/attempt.h"
#include "daemon/move/execute/operation.h"
#include "transport/copy/copy_pool.h"

namespace wb {

/// Copies the chunks whose both ends are here, region to region. An attempt has only a few in the
/// pool at once, so that packing for the wire is not kept waiting. Loop-confined.
class LocalCopier {
 public:
  LocalCopier(CopyPool& copies, OperationTable& operations, int at_once)
      : copies_(copies), operations_(operations), at_once_(at_once) {}

  /// The attempt has started to move.
  void Start(Attempt& attempt);
  void OnCopied(Operation& operation);

 private:
  void SubmitNext(Attempt& attempt);

  CopyPool& copies_;
  OperationTable& operations_;
  int at_once_;
};

}  // namespace wb
