// SPDX-License-Identifier: Apache-2.0
// Who is asked, where, and with which key.
#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "model/wire.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr const char* kShape = "write anthropic:MODEL or openai:MODEL, and @BASE_URL behind it for another server";

bool is_loopback(const std::string& url) {
  std::string host = url.substr(url.find("://") + 3);
  host = host.substr(0, host.find('/'));
  if (host.starts_with("[::1]")) return true;
  host = host.substr(0, host.find(':'));
  return host == "localhost" || (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
}

Status read_base(const std::string& given, Endpoint& e) {
  const std::size_t scheme = given.find("://") + 3;
  std::string url = given;
  while (url.size() > scheme && url.ends_with('/')) url.pop_back();
  const std::string rest = url.substr(scheme);
  const std::string host = rest.substr(0, rest.find('/'));
  if (host.empty()) return fail(Code::bad_input, "'" + given + "' names no host", "a base URL looks like https://host/v1");
  if (host.find('@') != std::string::npos)  // not quoted: it would be the secret
    return fail(Code::bad_input, "the base URL holds a user name or a password, which would go on record",
                std::string("put the key into ") + e.key_name());
  if (rest.find_first_of("?#") != std::string::npos) return fail(Code::bad_input, "the base URL has a query", "end it at the path");
  const bool bare = rest.find('/') == std::string::npos;
  // What differs is whose part "/v1" is: the base's (OpenAI's clients), or the path's (Anthropic's). Either is understood.
  if (e.protocol == "anthropic" && url.ends_with("/v1")) url.erase(url.size() - 3);
  if (e.protocol == "openai" && bare) url += "/v1";
  e.base_url = url, e.vendors = false;
  return {};
}

}  // namespace

std::string Endpoint::identity() const { return protocol + " " + model + (vendors ? "" : " at " + base_url); }

Result<Endpoint> read_endpoint(const std::string& spec, const std::function<std::string(const char*)>& environment) {
  Endpoint e;
  const std::size_t colon = spec.find(':');
  e.protocol = spec.substr(0, colon);
  if (colon == std::string::npos || (e.protocol != "anthropic" && e.protocol != "openai"))
    return fail(Code::bad_input, "'" + spec + "' names no model", kShape);
  e.model = spec.substr(colon + 1);
  const bool anthropic = e.protocol == "anthropic";
  e.base_url = anthropic ? "https://api.anthropic.com" : "https://api.openai.com/v1";
  for (const char* scheme : {"@http://", "@https://"})
    if (const std::size_t at = e.model.find(scheme); at != std::string::npos) {
      const std::string url = e.model.substr(at + 1);
      e.model.resize(at);
      FORGE_TRY(read_base(url, e));
      break;
    }
  // A model's name may hold an "@" (a dated snapshot), never a URL, and it does not end with one.
  if (e.model.ends_with('@') || e.model.find("://") != std::string::npos)
    return fail(Code::bad_input, "'" + spec + "': what follows the @ is no URL of http:// or https://", kShape);
  const auto odd = [](unsigned char c) { return c <= ' ' || c == 127; };
  if (e.model.empty() || std::any_of(e.model.begin(), e.model.end(), odd) || std::any_of(e.base_url.begin(), e.base_url.end(), odd))
    return fail(Code::bad_input, "'" + spec + "' names no model", kShape);
  e.key = trim(environment(e.key_name()));
  if (std::any_of(e.key.begin(), e.key.end(), odd))
    return fail(Code::unsupported, std::string(e.key_name()) + " holds white space or a line break", "set it to the key alone");
  const bool loopback = is_loopback(e.base_url);
  if (e.key.empty() && !loopback && (anthropic || e.vendors))
    return fail(Code::unsupported, std::string("no key for ") + e.identity(), std::string("set ") + e.key_name());
  if (e.base_url.starts_with("http://") && !loopback) e.key.clear();  // in the clear it would belong to whoever listens
  return e;
}

std::string without_key(std::string text, const Endpoint& e) {
  if (e.key.size() < 8) return text;  // a placeholder such as "none", as local servers want it: no secret
  for (std::size_t at; (at = text.find(e.key)) != std::string::npos;) text.replace(at, e.key.size(), "[key]");
  return text;
}

bool is_model_name(const std::string& spec) { return spec.starts_with("anthropic:") || spec.starts_with("openai:"); }

Result<std::unique_ptr<Model>> make_model(const std::string& spec, const ModelSettings& settings) {
  const auto environment = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  FORGE_TRY_ASSIGN(Endpoint endpoint, read_endpoint(spec, environment));
  Wire wire{.endpoint = std::move(endpoint), .settings = settings, .http = make_http(), .waiter = &real_waiter()};
  return wire.endpoint.protocol == "anthropic" ? make_anthropic(std::move(wire)) : make_openai(std::move(wire));
}

}  // namespace forge
