// SPDX-License-Identifier: Apache-2.0
// The Python expert's runner: its messages have the sizes and offsets of the C++ ones, and it answers a judge without a GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <string>

#include "runner/cuda_protocol.h"

namespace forge {
namespace {

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return text;
  char piece[4096];
  while (std::fgets(piece, sizeof piece, pipe)) text += piece;
  return pclose(pipe) == 0 ? text : "failed: " + text;
}

const std::string kScript = FORGE_SOURCE_DIR "/include/forge/python/forge_expert_runner.py";

bool has_python() { return output_of("python3 -c 'import socket; socket.recv_fds; print(1)'") == "1\n"; }

TEST(PythonRunner, MessagesHaveTheLayoutOfTheProtocol) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const std::string text = output_of("python3 " + kScript + " --layout");
#define FORGE_SAME(type, last)                                                                                            \
  EXPECT_NE(text.find(fmt::format("\"" #type "\": [{}, {}]", sizeof(wire::type), offsetof(wire::type, last))), text.npos) \
      << #type << " is " << sizeof(wire::type) << ", its last field at " << offsetof(wire::type, last) << ", Python says " << text
  FORGE_SAME(Header, bytes);
  FORGE_SAME(Load, plugin);
  FORGE_SAME(Ready, pattern);
  FORGE_SAME(Go, header);
  FORGE_SAME(Profile, seconds);
  FORGE_SAME(Reply, text);
  FORGE_SAME(Samples, note);
  FORGE_SAME(CudaImport, reserved);
  FORGE_SAME(CudaForget, allocation);
  FORGE_SAME(CudaTensor, shape);
  FORGE_SAME(CudaPrepare, args);
  FORGE_SAME(CudaBatch, reserved);
  FORGE_SAME(CudaPlaced, text);
  FORGE_SAME(CudaDone, text);
#undef FORGE_SAME
  const std::string values = output_of("python3 -c 'import sys; sys.path.insert(0, \"" FORGE_SOURCE_DIR
                                       "/include/forge/python\"); sys.dont_write_bytecode = True; import forge_expert_runner as r; "
                                       "print(r.MAGIC, r.VERSION, r.LARGEST, r.IMPORT, r.FORGET, r.PREPARE, r.BATCH, r.PLACED, r.DONE)'");
  using wire::Kind;
  const auto number = [](Kind kind) { return static_cast<int>(kind); };
  EXPECT_EQ(values, fmt::format("{} {} {} {} {} {} {} {} {}\n", wire::k_magic, wire::k_version, wire::k_largest, number(Kind::cuda_import),
                                number(Kind::cuda_forget), number(Kind::cuda_prepare), number(Kind::cuda_batch), number(Kind::cuda_placed),
                                number(Kind::cuda_done)));
}

TEST(PythonRunner, AnswersAJudge) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  EXPECT_EQ(output_of("python3 -B " FORGE_SOURCE_DIR "/tests/unit/runner/expert_runner_check.py " + kScript), "expert_runner_check: ok\n");
}

}  // namespace
}  // namespace forge
