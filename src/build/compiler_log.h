// SPDX-License-Identifier: Apache-2.0
// What a compiler said, made fit for records and for the coder's eyes. Private to this layer.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "build/build.h"
#include "util/process.h"

namespace forge {

// Valid UTF-8 (other bytes become '?'), without control characters, without the build folder's path, at most 16 KiB.
std::string clean_log(std::string_view output, const std::string& build_folder);
// The source has a #line directive: its own words stand for file and line in what the compiler says.
bool renames_lines(std::string_view source);

// SIGKILL without a time limit of ours: the compiler itself or one of its children was killed from outside, or for want of memory.
bool was_killed(const ProcessResult&);
// It failed for want of space in its folder.
std::optional<Error> disk_filled(const ProcessResult&, const fs::path& folder, const CompileLimits&);

// Why the run failed, or nothing when it did not.
std::optional<BuildFailure> explain_failure(const ProcessResult&, const std::string& log, const CompileLimits&);

}  // namespace forge
