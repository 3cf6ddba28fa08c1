// SPDX-License-Identifier: Apache-2.0
// forge-runner: holds one kernel in a sandbox. Started by the judge only, with its channel as descriptor 3.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "runner/serve.h"

int main() {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(forge::wire::k_channel_fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) {
    std::fputs("forge-runner is started by forge, not by hand.\n", stderr);
    return 64;
  }
  // No destructors: what a kernel may have overwritten is not walked again.
  _exit(forge::serve(forge::wire::k_channel_fd));
}
