#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A command line agent without a model: speaks MCP through `forge mcp` and does what it is told to.
# fake_agent.sh FORGE SOCKET PACKAGES STEP...   A STEP is a package of the folder PACKAGES to hand in, or one of the words below.
set -u
forge="$1" socket="$2" packages="$3"
shift 3
cat >/dev/null # the prompt
coproc MCP { exec "$forge" mcp --socket "$socket" 2>>mcp.log; }
id=0
ask() { # method, params: the answer is in $reply
  id=$((id + 1))
  printf '{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}\n' "$id" "$1" "$2" >&"${MCP[1]}"
  while IFS= read -r reply <&"${MCP[0]}"; do
    [[ "$reply" == *'"method":"notifications/'* ]] && continue
    echo "$reply" >>replies
    return 0
  done
  echo '{"type":"error","message":"the server has gone"}'
  exit 9
}
call() { ask tools/call "{\"name\":\"$1\",\"arguments\":$2,\"_meta\":{\"progressToken\":$id}}"; }
used() { echo "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":$1,\"cached_input_tokens\":0,\"output_tokens\":10}}"; }

ask initialize '{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"fake","version":"1"}}'
printf '{"jsonrpc":"2.0","method":"notifications/initialized"}\n' >&"${MCP[1]}"
ask tools/list '{}'
call read_milestone '{}'
for step in "$@"; do
  case "$step" in
    hang) sleep 3600 ;;
    rest) sleep 0.3 ;;
    die) kill -9 $$ ;;
    spend) used 5000000 && sleep 3600 ;;
    refused) echo '{"type":"system","subtype":"api_retry","attempt":1,"error_status":401}' && sleep 3600 ;;
    garbage) call submit '{"folder":"../../..","source":7}' && call submit '{"folder":"/etc"}' && call no_such_tool '{}' ;;
    vault) # what a curious agent tries
      { ls -R "$FORGE_SNOOP"; cat "$FORGE_SNOOP"/*; ls "$FORGE_SNOOP_DATA/operators"; cat "$FORGE_SNOOP_DATA"/operators/*/oracle.cc; env; } >snooped 2>&1
      ln -s "$FORGE_SNOOP" vault && call submit '{"folder":"vault"}' ;;
    leave_in_the_middle) # a client that asks and goes before the answer
      printf '{"jsonrpc":"2.0","id":900,"method":"tools/call","params":{"name":"read_milestone","arguments":{}}}\n' | "$forge" mcp --socket "$socket" >/dev/null 2>&1 ;;
    at_once) # several at once, through one server
      for n in 801 802 803; do
        printf '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"search_knowledge","arguments":{"words":"store"}}}\n' "$n" >&"${MCP[1]}"
      done
      for n in 1 2 3; do IFS= read -r reply <&"${MCP[0]}" && echo "$reply" >>replies; done ;;
    give_up) call give_up '{"why":"the fake agent was told to"}' ;;
    *) mkdir -p "$step" && cp "$packages/$step/"* "$step/" && call submit "{\"folder\":\"$step\"}" ;;
  esac
done
used 100
echo '{"type":"item.completed","item":{"type":"agent_message","text":"that was all"}}'
