// SPDX-License-Identifier: Apache-2.0
// The judge and a runner that lies: a real process (hostile_runner_main.cc) answers every request from the input, which is its script.
// First byte: whether it plays an image, an expert, or a GPU's image (over the tests' driver of host functions).
// link: forge_runner
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>

#include "../unit/runner/cuda_fake_driver.h"
#include "fuzz/target.h"
#include "runner/runner.h"

namespace forge {

static const cu::Driver& card() {
  static const cu::Driver table = [] {
    cu::Driver d = fake_card::driver();
    d.vm_export = [](void* fd, std::uint64_t, int, unsigned long long) -> cu::Status {
      return *static_cast<int*>(fd) = memfd_create("card", MFD_CLOEXEC), 0;
    };
    return d;
  }();
  return table;
}

static void ask(Runner& runner, const CallSpec& spec) {
  (void)runner.sandbox();
  (void)runner.description();
  if (!runner.prepare(spec)) (void)runner.call();  // refused, or the runner's end: a word, never a time
  (void)runner.scrub();
  for (int i = 0; i < 2; ++i)
    if (const auto t = runner.call()) HOLDS(std::isfinite(t->inside_s) && t->inside_s >= 0 && t->inside_s <= t->outside_s);
  if (runner.prepare_batch({spec}))
    if (const auto b = runner.batch(1)) HOLDS(*b >= 0);
  if (const auto p = runner.profile(0.001)) {
    for (const CodeSample& s : p->where) HOLDS(s.mapping.size() <= 96 && std::isfinite(s.share));
    for (const auto& [address, code] : p->hot_code) HOLDS(code.size() <= 4096);
  }
  (void)runner.prepare(spec);
  (void)runner.description();
}

static CallSpec call_of(const SharedBuffer* x, const SharedBuffer* y, const DeviceBuffer* dx, const DeviceBuffer* dy) {
  CallSpec s;
  s.inputs = {{x, Access::read, dx}};
  s.outputs = {{y, Access::write, dy}};
  s.input_specs = {{"x", DType::f32, false, {"n"}}};
  s.output_specs = {{"y", DType::f32, false, {"n"}}};
  s.input_shapes = s.output_shapes = {{25}};
  s.layout.fields = {{.kind = ArgField::Kind::tensor, .name = "y", .offset = 0, .bytes = 8}};
  s.layout.bytes = 16;
  s.plan.launches = {{"copy", 2, 0}};
  return s;
}

FORGE_FUZZ_TARGET(judge_runner) {
  if (bytes.empty()) return;
  static const SharedBuffer x = SharedBuffer::make(100, "x").value(), y = SharedBuffer::make(100, "y").value();
  const int kind = static_cast<unsigned char>(bytes[0]) % 3;
  bytes.remove_prefix(1);
  const std::string program = FORGE_BINARY_DIR "/fuzz/hostile_runner";
  Image image;
  image.bytes = std::string(bytes);
  image.plan.launches.resize(1);
  image.plan.launches[0].entry = "copy";
  if (kind == 2) {
    fake_card::state() = {};
    cu::set_driver(&card());
    {
      const auto dx = DeviceBuffer::make(1 << 20, "x"), dy = DeviceBuffer::make(1 << 20, "y");
      HOLDS(dx && dy);
      const CudaRunnerOptions options{.load_timeout_s = 2, .call_timeout_s = 2, .program = program};
      if (const auto r = start_cuda_image_runner(image, options)) ask(**r, call_of(nullptr, nullptr, &*dx, &*dy));
    }
    cu::set_driver(nullptr);
  } else {
    const RunnerOptions options{.cores = {0}, .load_timeout_s = 2, .call_timeout_s = 2, .program = program};
    const auto r = kind == 0 ? start_image_runner(image, options) : start_expert_runner(fuzz::put("expert", bytes), options);
    if (r) ask(**r, call_of(&x, &y, nullptr, nullptr));
  }
  HOLDS(Fd(dup(0)).get() < 200);  // no descriptor is lost
}

}  // namespace forge
