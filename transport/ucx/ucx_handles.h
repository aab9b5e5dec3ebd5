#pragma once

#include <ucp/api/ucp.h>

#include "planner/base/unique_handle.h"

namespace wb {

struct UcpConfigTraits {
  using Raw = ucp_config_t*;
  static constexpr Raw kNull = nullptr;
  static void Close(Raw config) noexcept { ucp_config_release(config); }
};
struct UcpContextTraits {
  using Raw = ucp_context_h;
  static constexpr Raw kNull = nullptr;
  static void Close(Raw context) noexcept { ucp_cleanup(context); }
};
struct UcpWorkerTraits {
  using Raw = ucp_worker_h;
  static constexpr Raw kNull = nullptr;
  static void Close(Raw worker) noexcept { ucp_worker_destroy(worker); }
};
struct UcpListenerTraits {
  using Raw = ucp_listener_h;
  static constexpr Raw kNull = nullptr;
  static void Close(Raw listener) noexcept { ucp_listener_destroy(listener); }
};

// Owners of what UCX hands out. Endpoints are not among them: they end by a request that needs
// progress (UcxEndpoints).
using UcpConfigHandle = UniqueHandle<UcpConfigTraits>;
using UcpContextHandle = UniqueHandle<UcpContextTraits>;
using UcpWorkerHandle = UniqueHandle<UcpWorkerTraits>;
using UcpListenerHandle = UniqueHandle<UcpListenerTraits>;

}  // namespace wb
