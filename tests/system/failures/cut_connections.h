#pragma once

#include <string>

namespace wb::test {

/// Cuts every TCP connection of this process, both ways, whatever it is for; who listens goes on.
void CutTcpConnections();

/// Cuts this process's connections to the Unix socket at `path`.
void CutConnectionsTo(const std::string& path);

}  // namespace wb::test
