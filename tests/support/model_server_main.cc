// SPDX-License-Identifier: Apache-2.0
// model_server [--port N] [--log FILE] SCRIPT: prints its port on a line of its own, then serves until it is ended (SIGTERM), or the
// process that started it ends. The script's format: model_server.h.
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support/model_server.h"

int main(int argc, char** argv) {
  using namespace forge;
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // a suite that dies leaves nothing behind
  int port = 0;
  fs::path log, script;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--port") == 0 && i + 1 < argc)
      port = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--log") == 0 && i + 1 < argc)
      log = argv[++i];
    else
      script = argv[i];
  }
  const auto text = read_file(script);
  auto server = text ? ModelServer::start(*text, script.parent_path(), log, port) : fail(text.error());
  if (!server) {
    std::fprintf(stderr, "model_server: %s\n", server.error().text().c_str());
    return 2;
  }
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  std::printf("%d\n", (*server)->port());
  std::fflush(stdout);
  int got = 0;
  sigwait(&ending, &got);
  return 0;
}
