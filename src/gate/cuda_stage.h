// SPDX-License-Identifier: Apache-2.0
// The judge's stage on a GPU: one or many slots of operands in memory that runners map, filled and compared by the judge's kernels.
// Same contract as the CPU's (judge.h); inputs are compared whole after every call. With one slot a Stage, with many a Batch.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/cuda_base.h"
#include "gate/judge.h"
#include "gate/judgement.h"
#include "gate/transform.h"
#include "util/random.h"

namespace forge {

class CudaSlots {
 public:
  using BaseMaker = std::function<Result<std::shared_ptr<DeviceBase>>()>;
  static Result<std::unique_ptr<CudaSlots>> make(std::shared_ptr<JudgeContext>, std::shared_ptr<JudgeDevice>, const AxisValues&,
                                                 std::string label, std::vector<std::shared_ptr<DeviceBase>> bases, BaseMaker make_another,
                                                 int slots);
  // What one slot takes in the card's memory.
  static std::size_t slot_bytes(const OperatorFolder&, const AxisValues&);

  int slots() const { return static_cast<int>(m_slots.size()); }
  const std::string& label() const { return m_label; }
  const AxisValues& axes() const { return m_axes; }
  Status refresh(int calls);
  CheckResult check(int calls);
  Result<CallSpec> call_for(const Image*, int slot);  // an expert's when there is no image

  // For the card's own test, which plays a kernel inside the judge.
  const DeviceBuffer* input(std::size_t i) const { return m_inputs[i] ? &*m_inputs[i] : nullptr; }
  const DeviceBuffer& output(std::size_t o) const { return *m_outputs[o]; }
  DevicePointer input_at(std::size_t i, int slot) const;
  DevicePointer output_at(std::size_t o, int slot) const;
  Result<Findings> findings(std::size_t o, int slot);                // by the card
  Result<Findings> findings_on_host(std::size_t o, int slot) const;  // by the CPU's comparator, from copies of everything
  const std::vector<double>& scalars() const { return m_bases[0]->scalars; }
  const std::shared_ptr<JudgeDevice>& device() const { return m_device; }

 private:
  struct Content {
    std::shared_ptr<DeviceBase> base;
    Action action;
  };
  struct Maps {  // of one content, over tables on the card
    std::vector<rules::MoveMap> inputs, outputs;
  };
  struct Slot {
    std::optional<Content> now;
    std::deque<Content> past;  // newest first; kept only where there is one slot
    Maps maps;
    std::vector<Pattern> poison;  // of the outputs
  };
  struct Space {
    DeviceBuffer buffer;
    std::size_t bytes;
    std::string name;
    WorkspaceInit init;
  };
  using Spaces = std::vector<Space>;
  struct Slack {  // bytes around a tensor that hold canaries
    DevicePointer at;
    std::size_t bytes;
    const std::string* label;
    const char* where;  // "just before", "just behind"
  };

  CudaSlots() = default;
  Result<std::shared_ptr<DeviceBase>> next_base();
  Result<std::vector<Maps>> place_maps(const std::vector<const Action*>&, DeviceMemory& tables) const;
  Status fill_slot(const Slot&, int slot) const;
  Status poison_at(DevicePointer, std::size_t bytes, const Pattern&) const;
  std::vector<Slack> slacks() const;
  Status make_counters(std::size_t count);
  Status set_canaries(const std::vector<Slack>&);
  Result<std::string> broken_canary();  // these three: what is wrong, or empty
  Result<std::string> changed_input(int calls);
  Result<std::string> dirty_workspace();
  // Findings of every output of the first `contents.size()` slots, as answers to these contents.
  Result<std::vector<std::vector<Findings>>> compare(const std::vector<const Content*>&, const std::vector<const Maps*>&);
  Result<CheckResult> check_all(int calls);
  Result<std::size_t> find_stale(const Slot&);  // how many calls ago; 0: none
  std::string describe(int slot, std::size_t o, std::int64_t index) const;
  Result<Spaces> make_spaces(const ConcretePlan&) const;
  std::vector<std::shared_ptr<Spaces>> live_spaces() const;
  Result<double> number_at(DevicePointer base, DType, std::int64_t index, bool negative) const;

  std::shared_ptr<JudgeContext> m_context;
  std::shared_ptr<JudgeDevice> m_device;
  AxisValues m_axes;
  std::string m_label;
  std::vector<std::shared_ptr<DeviceBase>> m_bases;
  BaseMaker m_make_another;
  bool m_repeats = false;
  Random m_random{0};
  std::vector<std::optional<DeviceBuffer>> m_inputs, m_outputs;  // scalars: none
  std::vector<std::size_t> m_input_stride, m_output_stride;
  std::vector<Slot> m_slots;
  std::map<std::string, std::weak_ptr<Spaces>> m_spaces;  // by image; stage.h says why weak
  DeviceMemory m_tables, m_counters, m_findings, m_first_use;
  std::vector<Slack> m_canaries;  // that are set now
  std::uint64_t m_canary_seed = 0;
};

std::unique_ptr<Stage> as_stage(std::unique_ptr<CudaSlots>);
std::unique_ptr<Batch> as_batch(std::unique_ptr<CudaSlots>);

}  // namespace forge
