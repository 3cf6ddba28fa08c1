// SPDX-License-Identifier: Apache-2.0
// A model's server for tests, on loopback: it speaks Anthropic's Messages (/v1/messages) and chat completions (/v1/chat/completions),
// streamed or not as the request asks, and answers by a script. As a program: model_server [--port N] [--log FILE] SCRIPT
//
// The script is JSON lines; '#' begins a comment line. Every line is one answer, used once, in order. All keys are optional:
//   for          string   only for requests of this model; requests take the first unused line that is for them or for anyone
//   times        int      how often the line is used; 0: for ever
//   must         string or list   what the request's body must hold (as it stands in the JSON); else the answer is status 400, which
//   must_not                      says what was wrong, and the line is used up
//   text         string   what the model says
//   thinking     string   before it (Anthropic only, with a signature)
//   calls        list     of {"tool", "arguments", "id"}: arguments an object, or a string that is sent as it is (malformed JSON);
//                         an id is made up where none is given, and "" sends none
//   stop         string   turn, tool_calls, length, refusal, pause, context; anything else is sent as it is. Default: by the calls
//   usage        object   input, cache_read, cache_write, output. Default: counted by length; null: the server sends none
//   fragment     int      characters of a fragment of text or arguments (20)
//   tear         int      bytes of one write to the socket; default: an event at a time
//   cut          int      the connection breaks after this many events
//   fail         string   after `cut` events (1), an error of this type comes inside the stream ("overloaded_error")
//   stall        number   seconds of silence before the answer
//   plain        bool     one JSON document, though the request asks for a stream
//   status       int      other than 200: an error, with `error` as its type, `message`, and `retry_after` (seconds) as a header.
//                         {{key}} in the message becomes the key that the request came with
//   raw          string   a body sent as it is, with status 200
// Within calls' arguments, {"$file": "path"} becomes the text of that file, relative to the script's folder.
// When no line is left, the answer is status 400 "the script is over". GET /left says how many answers are left.
//
// The log has a line for every request: {"path", "model", "key": whether one was sent, "line": of the script, "body"}.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "util/fs.h"

namespace forge {

struct SeenRequest {
  std::string path, key, body;
  int line = 0;  // of the script; 0: none was left
};

class ModelServer {
 public:
  // `folder`: what $file is relative to. `log`: empty for none.
  static Result<std::unique_ptr<ModelServer>> start(const std::string& script, const fs::path& folder = {}, const fs::path& log = {},
                                                    int port = 0);
  virtual ~ModelServer() = default;  // ends it, and breaks off what it was answering
  virtual int port() const = 0;
  virtual std::vector<SeenRequest> seen() const = 0;
  virtual int left() const = 0;  // answers; a line for ever counts as none
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port()); }
};

}  // namespace forge
