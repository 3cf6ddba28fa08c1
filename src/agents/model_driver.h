// SPDX-License-Identifier: Apache-2.0
// A language model in the coder's seat: the driver that turns messages into calls of the workbench. All its state is the exchanges so
// far, so a resumed run rebuilds the conversation from the record.
#pragma once
#include <memory>
#include <string>

#include "agents/driver.h"

namespace forge {

// `instructions`: the system prompt. `seconds`: of one question to the model, retries included.
std::unique_ptr<Driver> make_model_driver(std::unique_ptr<Model>, std::string instructions, double seconds);

}  // namespace forge
