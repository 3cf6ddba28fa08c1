// SPDX-License-Identifier: Apache-2.0
// forge serve
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "core/json_io.h"
#include "report/site.h"
#include "report/web.h"
#include "util/progress.h"

namespace forge {

namespace {

constexpr int kDefaultPort = 7420;

int serve(Context& c, const std::string& address, int port) {
  auto site = Site::open(c.paths);
  if (!site) return c.fail(site.error());
  auto server = WebServer::listen(address, port, [&](const WebRequest& asked) { return site->answer(asked); });
  if (!server) return c.fail(server.error());
  if (address != "localhost" && !is_loopback(address))
    std::fprintf(
        stderr,
        "forge: warning: whoever reaches %s sees every run here; there is no password and no encryption. `ssh -L` to a forge serve "
        "on loopback has both.\n",
        server->url().c_str());
  c.out(fmt::format("{}   all runs; the latest one: {}run/last\nCtrl-C stops", server->url(), server->url()));
  c.finish(dump(Json{{"url", server->url()}, {"port", server->port()}}));
  while (!stop_requested())
    if (auto served = server->serve_for(0.5); !served) return c.fail(served.error());
  return kOk;
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  auto address = std::make_shared<std::string>("127.0.0.1");
  auto port = std::make_shared<int>(kDefaultPort);
  CLI::App* sub = app.add_subcommand("serve", "pages that follow runs as they go; all runs, lineages, the use of knowledge");
  sub->add_option("--listen", *address, "address in figures; other than loopback, others can look too")->capture_default_str();
  sub->add_option("--port", *port, "0: a free one")->capture_default_str()->check(CLI::Range(0, 65535));
  sub->footer("Examples:\n  forge serve\n  forge serve --port 0 --json | jq -r .url");
  sub->callback([address, port, &action] { action = [address, port](Context& c) { return serve(c, *address, *port); }; });
}

}  // namespace forge
