// SPDX-License-Identifier: Apache-2.0
// A model's reply as the journal keeps it.
#pragma once
#include <string>

#include "model/model.h"

namespace forge {

std::string model_reply_to_json(const ModelReply&);
Result<ModelReply> read_model_reply(const std::string& json);

}  // namespace forge
