// SPDX-License-Identifier: Apache-2.0
// What a run teaches: for every decision of a sealed kernel that made a difference, the same kernel without it. Proposed, not
// believed: `forge kb certify` has the last word, and a person moves what holds into knowledge/.
#include <fmt/format.h>

#include "build/build.h"
#include "knowledge/knowledge.h"
#include "util/progress.h"

namespace forge {

Result<std::vector<std::string>> propose_entries(const fs::path& home, const std::string& operator_name,
                                                 const std::vector<Ablation>& ablations, const Machine& machine) {
  std::vector<std::string> ids;
  for (const Ablation& a : ablations) {
    const std::string id = fmt::format("{}-{}-{}", operator_name, a.decision, a.value);
    const fs::path folder = home / "proposed" / id;
    FORGE_TRY(make_dirs(folder));
    FORGE_TRY(write_package_folder(a.with, folder / "mechanism"));
    FORGE_TRY(write_package_folder(a.without, folder / "baseline"));
    const std::string toml = fmt::format(
        "# Proposed by a run on {device} ({date}): the sealed kernel with and without one decision.\n"
        "format = 1\nid = \"{id}\"\ntitle = \"{decision} = {value} in {op}\"\ntargets = [\"{target}\"]\n"
        "mechanism = \"The sealed kernel of {op} with {decision} = {value}; the baseline differs only in {decision} = {other}.\"\n"
        "symptoms = []\nlimitations = [\"seen on one operator only\"]\norigin = \"ablation of a sealed kernel, {gain:+.1f} % in unchecked "
        "paired timing\"\n\n"
        "[probe]\noperator = \"{op}\"\nmin_effect = 0.0\n\n"
        "[[advice]]\ndecision = \"{decision}\"\nvalue = \"{value}\"\nbecause = \"it gained {gain:.1f} % in {op} on {cls}\"\n",
        fmt::arg("device", machine.model), fmt::arg("date", utc_now()), fmt::arg("id", id), fmt::arg("decision", a.decision),
        fmt::arg("value", a.value), fmt::arg("other", a.alternative), fmt::arg("op", operator_name),
        fmt::arg("target", machine.target.name), fmt::arg("gain", 100 * (a.effect - 1)), fmt::arg("cls", machine.device_class));
    FORGE_TRY(parse_entry(toml, (folder / "entry.toml").string()));
    FORGE_TRY(write_file_atomic(folder / "entry.toml", toml));
    ids.push_back(id);
  }
  return ids;
}

}  // namespace forge
