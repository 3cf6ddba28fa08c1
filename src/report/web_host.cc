// SPDX-License-Identifier: Apache-2.0
// Which names in a Host header are ours.
#include <arpa/inet.h>

#include <algorithm>

#include "report/web.h"

namespace forge {

namespace {

bool is_figures(const std::string& host) {
  in6_addr wide;
  return inet_pton(AF_INET, host.c_str(), &wide) == 1 || inet_pton(AF_INET6, host.c_str(), &wide) == 1;
}

// "Name:80" -> "name", "[::1]:80" -> "::1"; empty when it is neither.
std::string host_name_of(std::string header) {
  std::transform(header.begin(), header.end(), header.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string host, port;
  if (header.starts_with("[")) {
    const std::size_t end = header.find(']');
    if (end == std::string::npos) return "";
    host = header.substr(1, end - 1), port = header.substr(end + 1);
    if (!is_figures(host)) return "";
  } else {
    const std::size_t colon = header.find(':');
    host = header.substr(0, colon), port = colon == std::string::npos ? "" : header.substr(colon);
  }
  const bool good_port = port.empty() || (port[0] == ':' && port.find_first_not_of("0123456789", 1) == std::string::npos);
  return good_port ? host : "";
}

}  // namespace

bool is_loopback(const std::string& address) {
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, address.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  return inet_pton(AF_INET6, address.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

// The port is not compared: behind `ssh -L 9000:localhost:7420` it is another one.
bool host_is_ours(const std::string& host_header, const std::string& listen_address, const std::string& own_name) {
  const std::string host = host_name_of(host_header);
  if (host == "localhost" || is_loopback(host)) return true;
  if (host.empty() || is_loopback(listen_address)) return false;
  return is_figures(host) || host == host_name_of(own_name);
}

}  // namespace forge
