// SPDX-License-Identifier: Apache-2.0
// What an agent's child writes into the run's socket. Input: the bytes of one connection.
// link: forge_agents
#include "agents/call_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(call_socket) {
  static const fs::path path = fuzz::folder() / "s";
  static CallListener listener = CallListener::open(path).value();
  Fd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  HOLDS(connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  if (!bytes.empty()) HOLDS(send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0);
  HOLDS(shutdown(client.get(), SHUT_WR) == 0 || true);
  while (const auto call = listener.wait(0, {})) listener.answer(call->ticket, {call->call.arguments, false});
}

}  // namespace forge
