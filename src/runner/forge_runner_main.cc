// SPDX-License-Identifier: Apache-2.0
// forge-runner: holds one kernel in a sandbox. Started by the judge, with its channel as descriptor 3; or by a profiler, with a call
// in a file.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "runner/cuda_serve.h"
#include "runner/serve.h"

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--once") == 0) return forge::serve_once(argv[2]);
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(forge::wire::k_channel_fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) {
    std::fputs("forge-runner is started by forge, not by hand.\n", stderr);
    return 64;
  }
  // "--python interpreter arguments...": the sandbox, then the interpreter in this process's place.
  if (argc > 2 && std::strcmp(argv[1], "--python") == 0) _exit(forge::become_python(argv + 2));
  // No destructors: what a kernel may have overwritten is not walked again.
  _exit(forge::serve(forge::wire::k_channel_fd));
}
