#pragma once

#include <memory>
#include <utility>

#include "client/include/weightbridge/weightbridge.h"
#include "client/src/layout_draft.h"
#include "client/src/session.h"
#include "client/src/shared_buffer.h"

// What the opaque handles of the C interface are. Only c_*.cc include this.
// NOLINTBEGIN(readability-identifier-naming): the names are the C interface's.

struct wb_shared_buffer {
  explicit wb_shared_buffer(wb::client::SealedBuffer buffer)
      : sealed(std::make_shared<const wb::client::SealedBuffer>(std::move(buffer))) {}
  std::shared_ptr<const wb::client::SealedBuffer> sealed;
};

struct wb_layout {
  wb::client::LayoutDraft draft;
};

struct wb_session {
  explicit wb_session(wb::client::Session opened) : session(std::move(opened)) {}
  wb::client::Session session;
};

// NOLINTEND(readability-identifier-naming)
