// weightbridged: the daemon of a node.

#include "daemon/serve.h"

int main(int argc, char** argv) {
  return wb::RunDaemon(argc, argv);
}
