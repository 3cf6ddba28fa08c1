// SPDX-License-Identifier: Apache-2.0
// For hyperfine: the one kernel that is linked in, called argv[1] times.
#include <cstdio>
#include <cstdlib>

#include "operands.h"

extern "C" int beside_call(const float*, const float*, float*, long);

int main(int argc, char** argv) {
  const long calls = argc == 2 ? std::atol(argv[1]) : 0;
  if (calls <= 0) {
    std::fprintf(stderr, "usage: %s CALLS\n", argv[0]);
    return 2;
  }
  const beside::Operands o;
  for (long i = 0; i < calls; ++i)
    if (beside_call(o.a.get(), o.b.get(), o.c.get(), beside::kRows) != 0) return 1;
}
