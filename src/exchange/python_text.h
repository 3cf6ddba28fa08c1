// SPDX-License-Identifier: Apache-2.0
// Reads a little of a Python file as text, never runs it: constants, the body of a function, and what shape a call that makes a
// tensor gives. Whatever is not plain is "not known", with the line that says so. Private to this layer.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/expr.h"
#include "core/operator.h"

namespace forge {

struct PythonLine {  // a logical line: brackets joined, comments gone, strings empty
  int number = 0, indent = 0;
  std::string text;
};
struct PythonFunction {
  int number = 0;
  std::vector<std::string> parameters;  // names only
  std::vector<PythonLine> body;
};
struct PythonConstant {
  std::vector<std::int64_t> values;
  bool tuple = false;
};
using PythonConstants = std::map<std::string, PythonConstant>;

std::vector<PythonLine> python_lines(const std::string& text);
// NAME = whole numbers at the left margin. What may be given another value in a way that is not read here is left out.
PythonConstants python_constants(const std::vector<PythonLine>&);
// Names that a line may give another value, by whatever statement: rather too many than too few.
struct PythonBindings {
  std::vector<std::string> names;    // x = 1; x += 1; x, y = f(); for x in y; del x; import x; (x := 1)
  std::vector<std::string> touched;  // changed in place: x[0] = 1; x.append(1)
  bool everything = false;           // from x import *; exec("")
};
PythonBindings python_bindings(const PythonLine&);
void forget_bound(const PythonBindings&, PythonConstants&);
std::size_t python_closing(const std::string& text, std::size_t open);  // the bracket that closes the one at `open`; npos: none
// The last function of the file, or of a class ("Model"); null when there is none.
std::optional<PythonFunction> python_function(const std::vector<PythonLine>&, const std::string& name, const std::string& of_class = {});
std::optional<std::pair<std::string, std::string>> python_assignment(const PythonLine&);  // x = ...; null for anything else
std::vector<std::string> split_top(const std::string& text, char separator);              // outside brackets; trimmed

struct PythonDim {
  std::string name;        // a plain name, else empty
  std::int64_t value = 0;  // -1: not known (a parameter)
};
struct PythonTensor {
  DType dtype = DType::f32;
  std::vector<PythonDim> dims;
};
// torch.rand(...), torch.empty(...).half() * 2 and the like. `parameters` are names that stand for a number unknown here.
std::optional<PythonTensor> python_tensor(const std::string& expression, const PythonConstants&,
                                          const std::vector<std::string>& parameters);

}  // namespace forge
