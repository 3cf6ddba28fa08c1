// SPDX-License-Identifier: Apache-2.0
// A GPU's runner without a GPU: the same code over a driver of host functions (cuda_fake_driver.h).
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>

#include "cuda_fake_driver.h"
#include "device/cuda.h"
#include "runner/cuda_compose.h"
#include "runner/cuda_faults.h"
#include "runner/cuda_serve.h"
#include "runner/cuda_slot.h"

namespace forge {
namespace {

class CudaRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    fake_card::state() = {};
    cu::set_driver(&fake_card::driver());
    auto v = CudaVehicle::make(fake_card::driver(), "our cubin");
    ASSERT_TRUE(v) << v.error().text();
    m_vehicle = std::move(*v);
    m_x = std::make_unique<DeviceBuffer>(*DeviceBuffer::make(1 << 20, "x"));
    m_y = std::make_unique<DeviceBuffer>(*DeviceBuffer::make(1 << 20, "y"));
    card().log.clear();
  }
  void TearDown() override {
    m_x.reset();
    m_y.reset();
    m_vehicle.reset();
    cu::set_driver(nullptr);
  }
  static fake_card::State& card() { return fake_card::state(); }

  CallSpec spec() const {
    CallSpec s;
    s.plan.launches = {{.entry = "copy", .grid = 8, .scratch_bytes = 65536, .block = 128, .cluster = 2, .pdl = false}};
    s.plan.maps = {{.name = "a",
                    .index = 0,
                    .dtype = DType::f16,
                    .offset_bytes = 512,
                    .dims = {64, 32},
                    .stride_bytes = {128},
                    .box = {64, 8},
                    .swizzle = 128,
                    .l2 = 256}};
    s.plan.workspaces = {{.name = "w", .bytes = 4096, .init = WorkspaceInit::zero}};
    using K = ArgField::Kind;
    s.layout.fields = {{.kind = K::map, .name = "map_a", .index = 0, .offset = 0, .bytes = 128},
                       {.kind = K::tensor, .name = "x", .offset = 128, .bytes = 8},
                       {.kind = K::tensor, .name = "y", .offset = 136, .bytes = 8},
                       {.kind = K::workspace, .name = "w", .offset = 144, .bytes = 8},
                       {.kind = K::scalar, .name = "s", .offset = 152, .bytes = 4},
                       {.kind = K::axis, .name = "n", .offset = 156, .bytes = 4}};
    s.layout.bytes = 256;
    s.input_specs = {{.name = "x"}, {.name = "s", .dtype = DType::f32, .scalar = true}};
    s.output_specs = {{.name = "y"}};
    s.inputs = {{.access = Access::read, .device = m_x.get(), .offset = 256}, {}};
    s.outputs = {{.access = Access::write, .device = m_y.get()}};
    s.workspaces = {{.access = Access::write, .device = m_y.get(), .offset = 8192}};
    s.scalars = {1.5};
    s.axes = {{"n", 77}};
    return s;
  }
  void import(CudaImports& imports, const ComposedCudaCall& call) {
    for (const auto& a : call.allocations) {
      std::uint64_t address = 0;
      const Answer r =
          imports.import({.allocation = a.buffer->id(), .bytes = a.buffer->allocation_bytes(), .writable = a.writable}, 5, address);
      ASSERT_EQ(r.outcome, wire::Outcome::ok) << r.text;
    }
  }

  std::unique_ptr<CudaVehicle> m_vehicle;
  std::unique_ptr<DeviceBuffer> m_x, m_y;
};

TEST_F(CudaRunnerTest, ACallIsColdHeldAndBetweenTwoEvents) {
  wire::CudaDone done;
  const Answer a = m_vehicle->call([](std::uint32_t) { return card().log.push_back("the call"), Answer{}; }, done);
  ASSERT_EQ(a.outcome, wire::Outcome::ok) << a.text;
  std::vector<std::string> words;
  for (const auto& line : card().log) words.push_back(line.substr(0, line.find(" grid")));
  EXPECT_EQ(words, (std::vector<std::string>{"limit", "reset", "launch forge_flush", "launch forge_hold", "event", "the call", "event",
                                             "launch forge_clock", "wait"}));
  EXPECT_NEAR(done.inside_s, 0.25e-3, 1e-9);
}

TEST_F(CudaRunnerTest, AFaultInACallIsNamedAndCarriesItsNumber) {
  card().synchronize = cu::kIllegalAddress;
  wire::CudaDone done;
  const Answer a = m_vehicle->call([](std::uint32_t) { return Answer{}; }, done);
  EXPECT_EQ(a.outcome, wire::Outcome::faulted);
  EXPECT_EQ(done.error, cu::kIllegalAddress);
}

TEST_F(CudaRunnerTest, ABatchIsGraphsThatAreRecordedOffTheClockAndOnce) {
  std::vector<std::uint32_t> slots;
  const auto queue = [&](std::uint32_t slot) { return slots.push_back(slot), Answer{}; };
  const auto counted = [&](const std::string& word) {
    return std::count_if(card().log.begin(), card().log.end(), [&](const auto& line) { return line.rfind(word, 0) == 0; });
  };
  ASSERT_EQ(m_vehicle->batch({.header = {}, .calls = 1, .flush_only = 1, .graphs = 3}, queue).outcome, wire::Outcome::ok);
  EXPECT_EQ(slots, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(counted("record"), 4) << "three calls, and the flush alone";
  EXPECT_EQ(counted("launch forge_flush"), 4) << "one in each";
  EXPECT_EQ(counted("play"), 1);
  card().log.clear();
  ASSERT_EQ(m_vehicle->batch({.header = {}, .calls = 4, .graphs = 3}, queue).outcome, wire::Outcome::ok);
  EXPECT_EQ(card().log, (std::vector<std::string>{"limit", "reset", "play", "play", "play", "play", "wait"}));
  EXPECT_EQ(slots.size(), 3u);
  EXPECT_EQ(m_vehicle->batch({.header = {}, .calls = 1}, queue).outcome, wire::Outcome::refused) << "of no call";
  m_vehicle->forget_recorded();
  EXPECT_EQ(card().graphs, 0) << "released";
  card().capture = 901;  // CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
  const Answer refused = m_vehicle->batch({.header = {}, .calls = 1, .graphs = 1}, queue);
  EXPECT_EQ(refused.outcome, wire::Outcome::refused) << "no fault of the kernel's: it can still be called";
  EXPECT_NE(refused.text.find("CUDA graph"), std::string::npos) << refused.text;
  card().capture = cu::kSuccess;
}

TEST_F(CudaRunnerTest, AddressesMapsAndValuesReachTheKernel) {
  const auto call = compose_cuda_image_call(spec(), {{"copy", 0}});
  ASSERT_TRUE(call) << call.error().text();
  ASSERT_EQ(call->allocations.size(), 2u);
  EXPECT_FALSE(call->allocations[0].writable);
  EXPECT_TRUE(call->allocations[1].writable);
  CudaImports imports(fake_card::driver());
  card().rights.clear();
  import(imports, *call);
  EXPECT_EQ(card().rights, (std::vector<std::string>{"read", "write"}));
  CudaSlot slot;
  const Answer made = CudaSlot::make(fake_card::driver(), *call->message, imports, {"copy"}, slot);
  ASSERT_EQ(made.outcome, wire::Outcome::ok) << made.text;
  ASSERT_EQ(slot.bind(fake_card::driver(), nullptr).outcome, wire::Outcome::ok);
  card().log.clear();
  ASSERT_EQ(slot.queue(fake_card::driver(), nullptr).outcome, wire::Outcome::ok);
  EXPECT_EQ(card().log, (std::vector<std::string>{"fill 4096", "launch copy grid=8 block=128 shared=65536 cluster=2"}));

  const auto word = [&](std::size_t at) {
    std::uint64_t v = 0;
    std::memcpy(&v, card().last_args.data() + at, 8);
    return v;
  };
  const std::uint64_t x = imports.at({m_x->id(), m_x->offset()}, 0), y = imports.at({m_y->id(), m_y->offset()}, 0);
  ASSERT_NE(x, 0u);
  EXPECT_EQ(word(0), x + 256 + 512);             // the map's base
  EXPECT_EQ(word(8) & 0xffffffff, 0x03030206u);  // l2 256, swizzle 128, rank 2, f16
  EXPECT_EQ(word(128), x + 256);
  EXPECT_EQ(word(136), y);
  EXPECT_EQ(word(144), y + 8192);
  EXPECT_EQ(word(152), std::uint64_t(77) << 32 | 0x3fc00000u);
}

TEST_F(CudaRunnerTest, WhatDoesNotFitIsRefusedWithItsField) {
  CallSpec s = spec();
  s.plan.launches[0].block = 2048;
  EXPECT_EQ(compose_cuda_image_call(s, {{"copy", 0}}).error().field, "launch[0].block");
  s = spec();
  s.plan.launches[0].grid = 7;
  EXPECT_EQ(compose_cuda_image_call(s, {{"copy", 0}}).error().field, "launch[0].cluster");
  EXPECT_EQ(compose_cuda_image_call(spec(), {}).error().field, "launch[0].entry");

  const auto call = compose_cuda_image_call(spec(), {{"copy", 0}});
  CudaImports none(fake_card::driver());
  CudaSlot slot;
  EXPECT_EQ(CudaSlot::make(fake_card::driver(), *call->message, none, {"copy"}, slot).outcome, wire::Outcome::refused);
  CudaImports imports(fake_card::driver());
  import(imports, *call);
  ASSERT_EQ(CudaSlot::make(fake_card::driver(), *call->message, imports, {"copy"}, slot).outcome, wire::Outcome::ok);
  card().blocks_per_sm = 0;
  const Answer a = slot.bind(fake_card::driver(), nullptr);
  EXPECT_EQ(a.outcome, wire::Outcome::load_failed);
  EXPECT_NE(a.text.find("launch of 'copy' (grid 8, block 128, shared 65536, cluster 2)"), std::string::npos) << a.text;
}

TEST_F(CudaRunnerTest, TheModuleIsLoadedAnewEverySixteenScrubs) {
  auto served = serve_cuda_image(*m_vehicle, "cubin", {"copy"});
  ASSERT_TRUE(served) << served.error().text();
  const int before = card().modules;
  for (int i = 0; i < kCallsPerModule; ++i) ASSERT_EQ((*served)->scrub(3).outcome, wire::Outcome::ok);
  EXPECT_EQ(card().modules, before + 1);
  EXPECT_EQ(card().live_modules, 2);  // ours and the image's
}

TEST_F(CudaRunnerTest, LocalMemoryIsScrubbedByAFrameAtLeastAsLarge) {
  card().frame = 700;
  auto served = serve_cuda_image(*m_vehicle, "cubin", {"copy"});
  ASSERT_TRUE(served);
  card().log.clear();
  ASSERT_EQ((*served)->scrub(3).outcome, wire::Outcome::ok);
  EXPECT_EQ(std::count(card().log.begin(), card().log.end(), "launch forge_scrub_local_1024 grid=8 block=1024 shared=0 cooperative"), 1);
  EXPECT_EQ(std::count(card().log.begin(), card().log.end(), "launch forge_scrub_shared grid=4 block=256 shared=232448 cooperative"), 1);
  card().frame = 20000;
  EXPECT_FALSE(serve_cuda_image(*m_vehicle, "cubin", {"copy"}));
}

TEST_F(CudaRunnerTest, TheLoopAnswersOverTheChannel) {
  auto served = serve_cuda_image(*m_vehicle, "cubin", {"copy"});
  ASSERT_TRUE(served);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  int code = -1;
  std::thread runner([&] {
    Packet packet;
    code = serve_cuda_requests(ends[1], packet, *m_vehicle, **served);
  });
  Packet answer;
  wire::Go go;
  EXPECT_EQ(send_message(ends[0], go, 9), 0);
  EXPECT_EQ(receive_packet(ends[0], answer, 10), Received::packet);
  const auto* done = answer.as<wire::CudaDone>();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->header.sequence, 9u);
  EXPECT_EQ(done->outcome, wire::Outcome::refused);  // slot 0 was never prepared
  close(ends[0]);
  runner.join();
  close(ends[1]);
  EXPECT_EQ(code, 0);
}

TEST(CudaFaultsTest, TheKernelLogSaysWhereAndHow) {
  const auto x = parse_xid(
      "4,1234,5678,-;NVRM: Xid (PCI:0000:00:07): 31, pid=812, name=forge-runner, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS "
      "GPC0 GPCCLIENT_T1_0 faulted @ 0x7f12_a4000000. Fault is of type FAULT_RO_VIOLATION ACCESS_TYPE_VIRT_WRITE\n");
  ASSERT_TRUE(x);
  EXPECT_EQ(x->number, 31);
  EXPECT_EQ(x->address, 0x7f12a4000000u);
  EXPECT_TRUE(x->read_only && x->wrote);
  const PlacedAllocation input{"input x", 0x7f12a4000000, 4 << 20, 256, 4 << 20, false};
  auto f = classify_cuda_fault(cu::kIllegalAddress, "700", {*x}, true, {input});
  EXPECT_EQ(f.reason, Reason::out_of_bounds);
  EXPECT_NE(f.detail.find("wrote to input x"), std::string::npos) << f.detail;

  XidReport behind = *x;
  behind.read_only = false;
  behind.address = input.address + input.bytes + 4096;
  f = classify_cuda_fault(cu::kIllegalAddress, "700", {behind}, true, {input});
  EXPECT_EQ(f.reason, Reason::out_of_bounds);
  EXPECT_NE(f.detail.find("past the end of input x"), std::string::npos) << f.detail;
  behind.address = 0x1000;
  EXPECT_EQ(classify_cuda_fault(cu::kIllegalAddress, "700", {behind}, true, {input}).reason, Reason::crashed);
  EXPECT_NE(classify_cuda_fault(cu::kIllegalAddress, "700", {}, false, {}).detail.find("cannot be read"), std::string::npos);
  EXPECT_FALSE(parse_xid("4,1,2,-;usb 1-1: new device"));
}

}  // namespace
}  // namespace forge
