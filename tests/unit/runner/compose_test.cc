// SPDX-License-Identifier: Apache-2.0
// What goes into a message, and what is made of what comes out. No process here.
#include "runner/compose.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "runner/channel.h"
#include "runner/fake_runner.h"

namespace forge {
namespace {

TEST(Scalars, HaveTheBytesOfTheirType) {
  EXPECT_EQ(scalar_bits(DType::f32, 1.0), 0x3f800000u);
  EXPECT_EQ(scalar_bits(DType::bf16, 1.0), 0x3f80u);
  EXPECT_EQ(scalar_bits(DType::bf16, 1.00390625), 0x3f80u);  // tie, to even
  EXPECT_EQ(scalar_bits(DType::f16, 1.0), 0x3c00u);
  EXPECT_EQ(scalar_bits(DType::f16, -2.5), 0xc100u);
  EXPECT_EQ(scalar_bits(DType::f16, 65504), 0x7bffu);
  EXPECT_EQ(scalar_bits(DType::f16, 65520), 0x7c00u);
  EXPECT_EQ(scalar_bits(DType::f16, std::ldexp(1, -24)), 1u);
  EXPECT_EQ(scalar_bits(DType::f16, std::ldexp(1, -14)), 0x0400u);
  EXPECT_EQ(scalar_bits(DType::f16, 2047.75), 0x6800u);  // carries into the exponent
  EXPECT_EQ(scalar_bits(DType::f16, 0), 0u);
  EXPECT_EQ(scalar_bits(DType::f16, NAN), 0x7e00u);
  EXPECT_EQ(scalar_bits(DType::i32, -1), 0xffffffffffffffffu);
  EXPECT_EQ(scalar_bits(DType::boolean, 3), 1u);
}

struct Fixture {
  SharedBuffer x = std::move(*SharedBuffer::make(100, "x")), y = std::move(*SharedBuffer::make(100, "y"));
  CallSpec spec;
  Fixture() {
    spec.inputs = {{&x, Access::read}};
    spec.outputs = {{&y, Access::write}};
    spec.input_specs = {{"x", DType::f32, false, {"n"}}};
    spec.output_specs = {{"y", DType::f32, false, {"n"}}};
    spec.input_shapes = spec.output_shapes = {{25}};
    spec.layout.fields = {{.kind = ArgField::Kind::tensor, .name = "y", .offset = 0, .bytes = 8},
                          {.kind = ArgField::Kind::axis, .name = "n", .offset = 8, .bytes = 4}};
    spec.layout.bytes = 16;
    spec.axes = {{"n", 25}};
    spec.plan.launches = {{"k", 2, 100}, {"k", 1, 300}};
  }
};

TEST(Compose, FillsTheArgumentStruct) {
  Fixture f;
  const auto call = compose_image_call(f.spec, {{"k", 0}});
  ASSERT_TRUE(call) << call.error().text();
  void* y = nullptr;
  std::int32_t n = 0;
  std::memcpy(&y, call->message->args, 8);
  std::memcpy(&n, call->message->args + 8, 4);
  EXPECT_EQ(y, f.y.data());
  EXPECT_EQ(n, 25);
  EXPECT_EQ(call->message->scratch_bytes, 300u);
  EXPECT_EQ(call->message->launch_count, 2u);
  ASSERT_EQ(call->buffers.size(), 2u);
  EXPECT_FALSE(call->buffers[0].writable);
  EXPECT_TRUE(call->buffers[1].writable);
}

TEST(Compose, ABufferBoundTwiceIsMappedOnce) {
  Fixture f;
  f.spec.outputs.push_back({&f.x, Access::write});
  const auto call = compose_image_call(f.spec, {{"k", 0}});
  ASSERT_TRUE(call);
  ASSERT_EQ(call->buffers.size(), 2u);
  EXPECT_TRUE(call->buffers[0].writable);
}

TEST(Compose, WhatHasNoValueIsNamed) {
  Fixture f;
  f.spec.layout.fields.push_back({.kind = ArgField::Kind::let, .name = "splits", .offset = 12, .bytes = 4});
  auto call = compose_image_call(f.spec, {{"k", 0}});
  ASSERT_FALSE(call);
  EXPECT_EQ(call.error().field, "splits");
  f.spec.layout.fields.back() = {.kind = ArgField::Kind::axis, .name = "n", .offset = 14, .bytes = 4};
  EXPECT_FALSE(compose_image_call(f.spec, {{"k", 0}}));  // outside the struct
  f.spec.layout.fields.pop_back();
  f.spec.plan.launches[0].grid = std::int64_t(1) << 40;
  EXPECT_FALSE(compose_image_call(f.spec, {{"k", 0}}));
  f.spec.plan.launches[0] = {"other", 1, 0};
  EXPECT_FALSE(compose_image_call(f.spec, {{"k", 0}}));
}

TEST(Classify, FaultsAreFoundInTheJudgesMap) {
  Fixture f;
  const std::vector<MappedBuffer> buffers = {{"input x", &f.x, false}, {"output y", &f.y, true}};
  auto at = [&](const std::byte* p, int wrote) {
    wire::Fault fault;
    fault.signal = SIGSEGV;
    fault.address = reinterpret_cast<std::uint64_t>(p);
    fault.wrote = wrote;
    return classify_fault(fault, buffers);
  };
  EXPECT_NE(at(f.y.mapping() + f.y.file_bytes(), 1).detail.find("wrote 156 bytes past the end of output y"), std::string::npos)
      << at(f.y.mapping() + f.y.file_bytes(), 1).detail;
  EXPECT_EQ(at(f.y.mapping() - 1, 0).reason, Reason::out_of_bounds);
  EXPECT_NE(at(f.x.data() + 8, 1).detail.find("wrote to input x at byte 8"), std::string::npos);
  EXPECT_EQ(at(nullptr, 1).reason, Reason::crashed);
  EXPECT_EQ(classify_ending({true, -1, SIGKILL}, "call").reason, Reason::runner_broke);
  EXPECT_TRUE(classify_ending({true, -1, SIGKILL}, "call").killed);
  EXPECT_FALSE(classify_ending({true, -1, SIGKILL, true}, "call").killed) << "by the judge itself";
  EXPECT_FALSE(classify_ending({true, -1, SIGTERM}, "call").killed);
  EXPECT_EQ(classify_ending({true, -1, SIGSYS}, "call").reason, Reason::forbidden_call);
  EXPECT_EQ(classify_ending({true, 0, 0}, "call").reason, Reason::runner_broke);
}

TEST(Channel, OnlyExactMessagesAreTaken) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const Fd a(ends[0]), b(ends[1]);
  Packet p;
  EXPECT_EQ(receive_packet(b.get(), p, 0.01), Received::timeout);
  wire::Done done;
  done.inside_s = 0.5;
  ASSERT_EQ(send_message(a.get(), done, 7), 0);
  ASSERT_EQ(receive_packet(b.get(), p, 1), Received::packet);
  ASSERT_NE(p.as<wire::Done>(), nullptr);
  EXPECT_EQ(p.as<wire::Done>()->header.sequence, 7u);
  EXPECT_EQ(p.as<wire::Reply>(), nullptr);

  // Each of these is one field wrong.
  auto refused = [&](wire::Done odd, std::size_t size) {
    send_packet(a.get(), &odd, size);
    return receive_packet(b.get(), p, 1) == Received::packet && p.as<wire::Done>() == nullptr;
  };
  done.header.kind = wire::Kind::done, done.header.bytes = sizeof done;
  wire::Done odd = done;
  EXPECT_TRUE(refused(odd, sizeof odd - 1));
  odd.header.magic = 1;
  EXPECT_TRUE(refused(odd, sizeof odd));
  odd = done, odd.header.version = done.header.version + 1;
  EXPECT_TRUE(refused(odd, sizeof odd));
  odd = done, odd.header.bytes = 4;
  EXPECT_TRUE(refused(odd, sizeof odd));
  odd = done, odd.header.kind = wire::Kind::reply;
  EXPECT_TRUE(refused(odd, sizeof odd));
  std::vector<char> large(wire::k_largest + 100);
  send_packet(a.get(), large.data(), large.size());
  EXPECT_EQ(receive_packet(b.get(), p, 1), Received::error);  // cut, so refused

  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const Fd read_end(pipe_ends[0]), write_end(pipe_ends[1]);
  ASSERT_EQ(send_message(a.get(), done, 8, {read_end.get()}), 0);
  ASSERT_EQ(receive_packet(b.get(), p, 1), Received::packet);
  EXPECT_EQ(p.fds.size(), 1u);
}

TEST(FakeRunner, PlaysWhatTheTestSays) {
  FakeRunner r;
  EXPECT_FALSE(r.call());
  Fixture f;
  r.on_call = [](const CallSpec& c) -> RunnerResult<CallTiming> {
    *c.outputs[0].buffer->data() = std::byte{42};
    return CallTiming{1, 2, 3};
  };
  ASSERT_TRUE(r.prepare(f.spec));
  ASSERT_TRUE(r.call());
  EXPECT_EQ(*f.y.data(), std::byte{42});
  r.prepare_failure = RunnerFailure{Reason::load_failed, "x"};
  EXPECT_FALSE(r.prepare(f.spec));
}

}  // namespace
}  // namespace forge
