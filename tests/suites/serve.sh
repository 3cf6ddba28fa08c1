#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# forge serve over real sockets: a run followed while it goes, names and paths that are refused, ports, clients that go away. serve.sh BUILD
source "$(dirname "$0")/../support/suite.sh"
export no_proxy='*'
server='' run=''
at_end() { for pid in $server $run; do kill "$pid" 2>/dev/null || true; done; }

# start ARGUMENTS... : a server on a free port; its URL is in $url
start() {
  "$forge" serve --port 0 --json "$@" >"$work/serve.json" 2>"$work/err" </dev/null &
  server=$!
  for _ in $(seq 100); do
    [[ -s "$work/serve.json" ]] && break
    kill -0 "$server" 2>/dev/null || fail "serve $* ended"
    sleep 0.1
  done
  url="$(jq -r .url "$work/serve.json")" port="$(jq -r .port "$work/serve.json")"
}
# stop SIGNAL: the server ends by itself, with 0, in a few seconds
stop() {
  kill "-$1" "$server"
  local code=0
  wait "$server" || code=$?
  server=''
  [[ $code -eq 0 ]] || fail "exit $code after SIG$1"
}
# get STATUS PATH [CURL OPTIONS]: the body goes to $work/body, the headers to $work/head
get() {
  local want="$1" path="$2" got
  shift 2
  : >"$work/body"  # curl leaves it alone where there is no body
  got="$(curl -s -m 20 -o "$work/body" -D "$work/head" -w '%{http_code}' --path-as-is "$@" "${url%/}$path")" || true
  [[ "$got" == "$want" ]] || fail "$path $*: $got (wanted $want)"
}
says() { grep -qiE -- "$1" "$work/${2:-body}" || fail "no '$1' in ${2:-body}"; }

# An empty state folder.
start
get 200 /
says 'no run yet'
for path in /runs /lineages /knowledge /api/runs /api/lineages /api/knowledge /style.css /live.js /chart.js; do get 200 "$path"; done
get 404 /run/last
get 404 /api/run/last
says 'there is no run yet'

# What every answer carries.
get 200 /
says "content-security-policy: default-src 'none'; script-src 'self'" head
says 'x-content-type-options: nosniff' head
says 'x-frame-options: deny' head
says 'cross-origin-resource-policy: same-origin' head
tag="$(sed -nE 's/^etag: (.*)\r$/\1/Ip' "$work/head")"
get 304 / -H "If-None-Match: $tag"
[[ ! -s "$work/body" ]] || fail "a 304 has no body"

# Names of others (DNS rebinding), two names, none; other methods; paths that lead out.
for host in evil.example "localhost.evil.example:$port" '[evil]' "$(hostname).evil"; do get 403 /api/runs -H "Host: $host"; done
for host in "localhost:$port" 127.0.0.1 '[::1]:9'; do get 200 /api/runs -H "Host: $host"; done
get 403 / -0 -H 'Host:'
for method in POST PUT DELETE OPTIONS PATCH TRACE FROB; do
  get 405 / -X "$method"
  says 'allow: GET' head
done
get 405 / --data-binary "@$forge"
ln -s /etc "$FORGE_HOME/runs/etc"
for path in /../../etc/passwd /run/../../etc/passwd /run/%2e%2e/%2e%2e/etc/passwd /run/..%2f..%2fetc%2fpasswd /run/etc /run/etc/passwd \
  /api/run/..%00 '/run/%ff' //etc/passwd /index.sqlite /vault; do
  get 404 "$path"
  grep -q root: "$work/body" && fail "$path led out"
done
rm "$FORGE_HOME/runs/etc"
head -c 100000 /dev/zero | tr '\0' a >"$work/long"
get 414 "/$(head -c 60000 "$work/long")"
printf 'nonsense\r\n\r\n' >"/dev/tcp/127.0.0.1/$port"
get 200 /

# A port in use, an address that is not ours, a port that is none.
"$forge" serve --port "$port" >"$work/body" 2>&1 && fail "two on one port"
says 'something else listens on 127.0.0.1 port .*--port 0'
code=0; "$forge" serve --listen example.org --port 0 >"$work/body" 2>&1 || code=$?
[[ $code -eq 2 ]] || fail "a name to listen on: exit $code"
code=0; "$forge" serve --port 70000 >"$work/body" 2>&1 || code=$?
[[ $code -eq 2 ]] || fail "port 70000: exit $code"

# A run followed while it goes.
"$forge" run softmax_f32 --candidates 2 --wall-seconds 120 >"$work/run.out" 2>&1 </dev/null &
run=$!
seen=() running=0
for _ in $(seq 400); do
  if curl -s -m 20 "${url}api/run/last" >"$work/body" && jq -e .events "$work/body" >/dev/null 2>&1; then
    events="$(jq .events "$work/body")"
    [[ ${#seen[@]} -gt 0 && "${seen[-1]}" == "$events" ]] || seen+=("$events")
    [[ "$(jq -r .state "$work/body")" == running ]] && running=$((running + 1))
  fi
  kill -0 "$run" 2>/dev/null || break
  sleep 0.2
done
code=0
wait "$run" || code=$?
[[ $code -le 1 ]] || fail "the run: $(tail -3 "$work/run.out")"  # 1: a busy machine, on which nothing is faster for certain
run=''
[[ ${#seen[@]} -ge 3 && $running -ge 3 ]] || fail "the run was not seen to grow: events ${seen[*]}, running $running times"
get 200 /api/run/last
[[ "$(jq -r .state "$work/body")" == finished ]] || fail "a finished run"
[[ "$(jq '.versions | length' "$work/body")" -ge 1 ]] || fail "no version"
jq -e '.reference.seconds > 0 and .roofline_seconds > 0 and (.reasons | length > 0) and (.milestone | length > 0)' "$work/body" >/dev/null || fail "facts"
id="$(jq -r .run "$work/body")"
grep -q 'extern "C"' "$work/body" && fail "a source is told"
get 200 "/run/$id"
says 'Hand-ins'
get 200 /lineages
if grep -q '"type":"vault.seal"' "$FORGE_HOME/runs/$id/journal.jsonl"; then says 'gen0'; else says 'nothing was sealed yet'; fi
get 200 /api/lineages
grep -q 'extern "C"' "$work/body" && fail "a sealed source is told"
get 200 /knowledge
says 'retrieved 1'

# In a browser, where there is one: the page's policy lets its own scripts run, and the chart is drawn.
if browser="$(command -v chromium)"; then
  timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$work/chromium" --virtual-time-budget=5000 \
    --dump-dom "${url}run/$id" >"$work/body" 2>"$work/chromium.log" || fail "chromium: $(tail -3 "$work/chromium.log")"
  says 'id="status"[^>]*>last event .*; followed live<'
  says '<canvas id="chart"[^>]* width="[1-9]'
  grep -qi 'Refused to\|Uncaught' "$work/chromium.log" && fail "the page's policy: $(cat "$work/chromium.log")"
else
  echo "serve: no chromium here; the page was not run in a browser"
fi

# A journal that cannot be read hides no other run; a state folder that went away is said, and not made anew.
mkdir -p "$FORGE_HOME/runs/odd/journal.jsonl"
get 200 /api/runs
jq -e '[.runs[] | .state] | sort == ["finished", "unreadable"]' "$work/body" >/dev/null || fail "one run of two cannot be read"
get 200 /
says 'unreadable'
rm -r "$FORGE_HOME/runs/odd"
mv "$FORGE_HOME" "$work/away"
for path in / /lineages /api/runs /api/lineages /api/run/last; do
  get 503 "$path"
  says 'runs is not there any more'
done
[[ ! -e "$FORGE_HOME" ]] || fail "looking made a state folder"
mv "$work/away" "$FORGE_HOME"
get 200 /api/runs
says "$id"

# The same journal growing by bytes: a torn last line shows nothing of itself, and comes when it is whole.
mkdir "$FORGE_HOME/runs/copy"
journal="$FORGE_HOME/runs/$id/journal.jsonl" copy="$FORGE_HOME/runs/copy/journal.jsonl"
head -n 4 "$journal" >"$copy"
get 200 /api/run/copy
[[ "$(jq .events "$work/body")" -eq 4 && "$(jq -r .state "$work/body")" == interrupted ]] || fail "four events"
line="$(sed -n 5p "$journal")"
printf '%s' "${line:0:30}" >>"$copy"
get 200 /api/run/copy
[[ "$(jq .events "$work/body")" -eq 4 ]] || fail "half a line is no event"
printf '%s\n' "${line:30}" >>"$copy"
get 200 /api/run/copy
[[ "$(jq .events "$work/body")" -eq 5 ]] || fail "the whole line is one"
tail -n +6 "$journal" >>"$copy"
get 200 /api/run/copy
[[ "$(jq .events "$work/body")" -eq "$(wc -l <"$journal")" ]] || fail "all events"
sed -i '3s/"seq":3/"seq":4/' "$copy"
get 409 /api/run/copy
says 'damaged'
get 200 /api/runs
rm -r "$FORGE_HOME/runs/copy"
get 404 /api/run/copy

# Clients that go away: killed in mid-answer, connected and silent. The next one is served.
for _ in 1 2 3; do
  curl -s --limit-rate 1k "${url}chart.js" >/dev/null & client=$!
  sleep 0.2
  kill -9 "$client"; wait "$client" 2>/dev/null || true
done
exec 7<>"/dev/tcp/127.0.0.1/$port" 8<>"/dev/tcp/127.0.0.1/$port"
printf 'GET / HTTP/1.1\r\nHost: local' >&7
get 200 /
exec 7>&- 8>&-
# More of them than it has connections for, each with half a header: whoever asks properly is still answered.
halves=()
for _ in $(seq 80); do
  exec {half}<>"/dev/tcp/127.0.0.1/$port"
  printf 'GET / HTTP/1.1\r\nHost: local' >&"$half"
  halves+=("$half")
done
for path in / /api/runs /chart.js; do get 200 "$path"; done
for half in "${halves[@]}"; do exec {half}>&-; done
get 200 /
kill -0 "$server" || fail "the server died with its client"

# Ctrl-C and SIGTERM stop it, with clients connected; the port is free at once.
exec 7<>"/dev/tcp/127.0.0.1/$port"
stop INT
exec 7>&-
"$forge" serve --port "$port" >"$work/out" 2>"$work/err" </dev/null & server=$!
for _ in $(seq 100); do [[ -s "$work/out" ]] && break; sleep 0.1; done
grep -q "http://127.0.0.1:$port/" "$work/out" || fail "the same port again: $(cat "$work/out")"
get 200 /
stop TERM

# Elsewhere than on loopback it warns, and still answers to no name of others.
start --listen 0.0.0.0
says 'warning: whoever reaches' err
url="http://127.0.0.1:$port/"
get 200 /api/runs
get 200 /api/runs -H "Host: 192.0.2.7:$port"
get 403 /api/runs -H 'Host: evil.example'
stop TERM
echo "serve: a run followed, names and paths refused, ports, clients that go away"
