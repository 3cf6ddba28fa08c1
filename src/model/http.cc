// SPDX-License-Identifier: Apache-2.0
#include "model/http.h"

#define CURL_DISABLE_TYPECHECK  // its macros would shadow the pointers' types
#include <curl/curl.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/version.h"
#include "util/library.h"
#include "util/progress.h"
#include "util/text.h"

namespace forge {
namespace {

constexpr std::size_t kMaxErrorBody = 64 << 10;

struct Curl {
  decltype(&::curl_easy_init) init = nullptr;
  CURLcode (*setopt)(CURL*, CURLoption, ...) = nullptr;
  decltype(&::curl_easy_perform) perform = nullptr;
  CURLcode (*getinfo)(CURL*, CURLINFO, ...) = nullptr;
  decltype(&::curl_easy_strerror) text = nullptr;
  decltype(&::curl_easy_cleanup) cleanup = nullptr;
  decltype(&::curl_slist_append) append = nullptr;
  decltype(&::curl_slist_free_all) free_list = nullptr;
  bool ready = false;
};

const Curl& curl() {
  static const Curl opened = [] {
    Curl c;
    Library library("libcurl.so.4");
    decltype(&::curl_global_init) global = nullptr;
    library.find(global, "curl_global_init");
    library.find(c.init, "curl_easy_init");
    library.find(c.setopt, "curl_easy_setopt");
    library.find(c.perform, "curl_easy_perform");
    library.find(c.getinfo, "curl_easy_getinfo");
    library.find(c.text, "curl_easy_strerror");
    library.find(c.cleanup, "curl_easy_cleanup");
    library.find(c.append, "curl_slist_append");
    library.find(c.free_list, "curl_slist_free_all");
    c.ready = library.whole() && global(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    return c;
  }();
  return opened;
}

// One exchange, as curl's callbacks see it.
struct Exchange {
  CURL* handle = nullptr;
  HttpReply reply;
  const std::function<bool(std::string_view)>* take = nullptr;
  bool satisfied = false, stopped = false, idle = false;
  double idle_seconds = 0, last_life = 0;
  curl_off_t moved = -1;  // bytes, both ways
};

std::size_t on_header(char* data, std::size_t, std::size_t size, void* self) {
  auto& x = *static_cast<Exchange*>(self);
  const std::string line = trim(std::string_view(data, size));
  if (line.starts_with("HTTP/")) x.reply.headers.clear();  // an interim answer may have come before
  const std::size_t colon = line.find(':');
  if (colon == std::string::npos || line.starts_with("HTTP/")) return size;
  std::string name = line.substr(0, colon);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  x.reply.headers.emplace_back(name, trim(line.substr(colon + 1)));
  return size;
}

std::size_t on_data(char* data, std::size_t, std::size_t size, void* self) {
  auto& x = *static_cast<Exchange*>(self);
  long status = 0;
  if (const Curl& c = curl(); c.ready) c.getinfo(x.handle, CURLINFO_RESPONSE_CODE, &status);  // it is: it called
  if (status / 100 == 2) {
    x.satisfied = !(*x.take)({data, size});
    return x.satisfied ? 0 : size;
  }
  x.reply.body.append(data, std::min(size, kMaxErrorBody - x.reply.body.size()));
  return size;
}

int on_progress(void* self, curl_off_t, curl_off_t down, curl_off_t, curl_off_t up) {
  auto& x = *static_cast<Exchange*>(self);
  const double now = monotonic_seconds();
  if (down + up != x.moved) x.moved = down + up, x.last_life = now;
  x.stopped = stop_requested();
  x.idle = now - x.last_life > x.idle_seconds;
  return x.stopped || x.idle;  // anything but 0 ends the exchange
}

tl::unexpected<Error> refuse(CURLcode code, const Exchange& x, const HttpRequest& request, const char* detail) {
  const std::string what = request.url + ": " + (*detail ? detail : curl().text(code));
  if (x.stopped) return fail(Code::interrupted, request.url + ": stopped while waiting for an answer");
  if (x.idle) return fail(Code::timeout, request.url + ": no byte for " + format_seconds(request.idle_seconds));
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return fail(Code::timeout, what);
    case CURLE_URL_MALFORMAT:
      return fail(Code::bad_input, what, "a base URL looks like https://host/v1");
    case CURLE_UNSUPPORTED_PROTOCOL:
      return fail(Code::unsupported, what, "use http or https, and a libcurl with TLS (apt-get install libcurl4)");
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return fail(Code::unsupported, what, "apt-get install ca-certificates, or name the authority's file in SSL_CERT_FILE");
    default:
      return fail(Code::io, what);
  }
}

class CurlHttp : public Http {
 public:
  Result<HttpReply> post(const HttpRequest& request, const std::function<bool(std::string_view)>& take) override {
    const Curl& c = curl();
    if (!c.ready) return fail(Code::unsupported, "no libcurl.so.4 here, which talks to a model", "apt-get install libcurl4");
    Exchange x;
    x.take = &take, x.idle_seconds = request.idle_seconds, x.last_life = monotonic_seconds();
    x.handle = c.init();
    curl_slist* headers = nullptr;
    const auto add = [&](const std::string& line) {
      if (curl_slist* longer = c.append(headers, line.c_str())) headers = longer;
    };
    for (const auto& [name, value] : request.headers) add(name + ": " + value);
    add("Expect:");  // or a long body waits a second for a word that few servers say
    char detail[CURL_ERROR_SIZE] = "";
    set_up(x, request, headers, detail);
    const CURLcode code = c.perform(x.handle);
    long status = 0;
    c.getinfo(x.handle, CURLINFO_RESPONSE_CODE, &status);
    x.reply.status = static_cast<int>(status);
    c.cleanup(x.handle);
    c.free_list(headers);
    // The status of a refusal counts even where its explanation broke off.
    const bool refused = status >= 300 && !x.stopped;
    if (code != CURLE_OK && !x.satisfied && !refused) return refuse(code, x, request, detail);
    return std::move(x.reply);
  }

 private:
  static void set_up(Exchange& x, const HttpRequest& request, curl_slist* headers, char* detail) {
    const Curl& c = curl();
    const auto milliseconds = [](double seconds) { return static_cast<long>(std::clamp(std::ceil(seconds * 1e3), 1.0, 1e9)); };
    c.setopt(x.handle, CURLOPT_URL, request.url.c_str());
    c.setopt(x.handle, CURLOPT_PROTOCOLS_STR, "http,https");
    c.setopt(x.handle, CURLOPT_POST, 1L);
    c.setopt(x.handle, CURLOPT_POSTFIELDS, request.body.data());
    c.setopt(x.handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    c.setopt(x.handle, CURLOPT_HTTPHEADER, headers);
    c.setopt(x.handle, CURLOPT_USERAGENT, (std::string("forge/") + forge_version()).c_str());
    c.setopt(x.handle, CURLOPT_NOSIGNAL, 1L);  // no alarm(2): other threads run
    c.setopt(x.handle, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    if (const char* authorities = std::getenv("SSL_CERT_FILE")) c.setopt(x.handle, CURLOPT_CAINFO, authorities);  // a company's own
    c.setopt(x.handle, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(request.connect_seconds));
    c.setopt(x.handle, CURLOPT_TIMEOUT_MS, milliseconds(request.total_seconds));
    c.setopt(x.handle, CURLOPT_ERRORBUFFER, detail);
    c.setopt(x.handle, CURLOPT_HEADERFUNCTION, &on_header);
    c.setopt(x.handle, CURLOPT_HEADERDATA, &x);
    c.setopt(x.handle, CURLOPT_WRITEFUNCTION, &on_data);
    c.setopt(x.handle, CURLOPT_WRITEDATA, &x);
    c.setopt(x.handle, CURLOPT_NOPROGRESS, 0L);
    c.setopt(x.handle, CURLOPT_XFERINFOFUNCTION, &on_progress);
    c.setopt(x.handle, CURLOPT_XFERINFODATA, &x);
  }
};

}  // namespace

std::string HttpReply::header(const std::string& name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return {};
}

std::unique_ptr<Http> make_http() { return std::make_unique<CurlHttp>(); }

}  // namespace forge
