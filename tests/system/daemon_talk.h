#pragma once

#include <chrono>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/temp_folder.h"
#include "tests/system/daemon_process.h"

namespace wb::test {

/// "exited with code 1", as DaemonProcess::Ends says it.
[[nodiscard]] std::string Exited(int code);

/// What a daemon answers to `wbctl COMMAND -o json`.
nlohmann::json AskDaemon(const TempFolder& folder,
                         const std::string& command,
                         const DaemonProcess& daemon);

/// Whether `wbctl status` shows `key` as `value` within `bound`.
[[nodiscard]] bool StatusBecomes(const TempFolder& folder,
                                 const DaemonProcess& daemon,
                                 const std::string& key,
                                 const nlohmann::json& value,
                                 std::chrono::milliseconds bound);

/// Whether one of the waits that `wbctl status` shows holds `text` within `bound`.
[[nodiscard]] bool WaitsShow(const TempFolder& folder,
                             const DaemonProcess& daemon,
                             const std::string& text,
                             std::chrono::milliseconds bound = std::chrono::seconds(10));

/// Whether a daemon's log holds `text` within `bound`.
[[nodiscard]] bool LogShows(const DaemonProcess& daemon,
                            const std::string& text,
                            std::chrono::milliseconds bound = std::chrono::seconds(10));

}  // namespace wb::test
