// SPDX-License-Identifier: Apache-2.0
// Private to .cc files: tokens as the journal keeps them, in a coder's turn and in an architect's answer.
#pragma once
#include "core/json_io.h"
#include "core/json_reader.h"
#include "model/model.h"

namespace forge {

Json to_json_value(const TokenUse&);
void read_use(JsonReader, TokenUse&);  // errors are the reader's

}  // namespace forge
