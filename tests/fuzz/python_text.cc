// SPDX-License-Identifier: Apache-2.0
// Python that is read as text. Input: a file, as KernelBench and GPU MODE have them.
// link: forge_exchange
#include "exchange/python_text.h"

#include "fuzz/target.h"

namespace forge {

FORGE_FUZZ_TARGET(python_text) {
  const auto lines = python_lines(std::string(bytes));
  const PythonConstants constants = python_constants(lines);
  for (const PythonLine& l : lines) {
    HOLDS(l.number > 0 && l.indent >= 0);
    if (const auto a = python_assignment(l)) (void)python_tensor(a->second, constants, {"m", "n"});
    for (const std::string& part : split_top(l.text, ',')) (void)python_tensor(part, constants, {});
  }
  for (const char* name : {"get_inputs", "generate_input", "forward"})
    for (const char* of : {"", "Model"}) (void)python_function(lines, name, of);
}

}  // namespace forge
