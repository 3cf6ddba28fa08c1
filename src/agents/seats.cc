// SPDX-License-Identifier: Apache-2.0
#include "agents/seats.h"

#include <fmt/format.h>

#include "agents/builtin.h"

namespace forge {

namespace {

Error unknown(const char* seat, const std::string& spec) {
  return Error{.code = Code::bad_input,
               .message = fmt::format("no {} is called '{}'", seat, spec),
               .file = {},
               .line = 0,
               .field = seat,
               .fix = "builtin"};
}

}  // namespace

Status check_seats(const Paths& paths, const Task& task, const Machine& machine) {
  if (task.architect != "builtin") return fail(unknown("architect", task.architect));
  if (task.coder != "builtin") return fail(unknown("coder", task.coder));
  FORGE_TRY(load_blueprint(paths, task.operator_name, machine.target));
  return {};
}

Result<Seats> take_seats(const Paths& paths, const Task& task, const Machine& machine, Journal&, const SeatOptions&) {
  FORGE_TRY(check_seats(paths, task, machine));
  FORGE_TRY_ASSIGN(const Blueprint blueprint, load_blueprint(paths, task.operator_name, machine.target));
  Seats seats;
  seats.architect = make_builtin_architect(blueprint);
  seats.coder = make_builtin_coder(blueprint);
  return seats;
}

}  // namespace forge
