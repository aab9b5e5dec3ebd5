#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Early return of a failed absl::Status. The expression is evaluated once. One if, no loop around
// it: clang-tidy counts what a macro nests as the function's own.
#define WB_RETURN_IF_ERROR(expr)                              \
  if (absl::Status wb_status_ = (expr); wb_status_.ok()) {    \
  } else /* NOLINT(readability-else-after-return): a macro */ \
    return wb_status_

#define WB_STATUS_CONCAT_INNER(a, b) a##b
#define WB_STATUS_CONCAT(a, b) WB_STATUS_CONCAT_INNER(a, b)

// `WB_ASSIGN_OR_RETURN(const Box box, Box::Create(...));` assigns the value of a StatusOr, or
// returns its status.
// NOLINTBEGIN(bugprone-macro-parentheses): `lhs` may be a declaration.
#define WB_ASSIGN_OR_RETURN(lhs, expr) \
  WB_ASSIGN_OR_RETURN_IMPL(WB_STATUS_CONCAT(wb_statusor_, __LINE__), lhs, expr)
#define WB_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                             \
  if (!tmp.ok()) {                               \
    return tmp.status();                         \
  }                                              \
  lhs = *std::move(tmp)
// NOLINTEND(bugprone-macro-parentheses)
