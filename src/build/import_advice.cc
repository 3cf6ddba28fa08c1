// SPDX-License-Identifier: Apache-2.0
#include "build/import_advice.h"

#include <elf.h>

#include <algorithm>
#include <iterator>

namespace forge {

namespace {

constexpr std::string_view kMath[] = {
    "exp",       "exp2",  "exp10", "expm1",     "log",    "log2",   "log10",  "log1p",    "pow",   "sin",  "cos",   "tan",   "sincos",
    "asin",      "acos",  "atan",  "atan2",     "sinh",   "cosh",   "tanh",   "erf",      "erfc",  "sqrt", "cbrt",  "hypot", "fmod",
    "remainder", "round", "rint",  "nearbyint", "lrint",  "llrint", "lround", "llround",  "floor", "ceil", "trunc", "fma",   "fmax",
    "fmin",      "fabs",  "ldexp", "frexp",     "scalbn", "tgamma", "lgamma", "copysign", "fdim",  "modf", "logb",  "ilogb"};

bool is_math(std::string_view name) {
  const auto known = [](std::string_view n) { return std::find(std::begin(kMath), std::end(kMath), n) != std::end(kMath); };
  if (known(name)) return true;
  return !name.empty() && (name.back() == 'f' || name.back() == 'l') && known(name.substr(0, name.size() - 1));
}

bool any_of(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view p) { return name.find(p) != std::string_view::npos; });
}

}  // namespace

std::string import_advice(std::string_view n) {
  if (is_math(n))
    return "there is no libm: write the function as a polynomial in the kernel, or use the vector instruction (_mm256_sqrt_ps, "
           "_mm256_round_ps)";
  if (any_of(n, {"malloc", "calloc", "realloc", "free", "mmap", "_Znw", "_Zna", "_Zdl", "_Zda", "aligned_alloc"}))
    return "a kernel allocates nothing: use a workspace or the block's scratch (`smem` in launch.toml)";
  if (any_of(n, {"__cxa_guard", "__cxa_atexit", "__dso_handle"}))
    return "a static variable is built at run time: make it `static constexpr`";
  if (n == "__tls_get_addr") return "a kernel has no thread-local data: use the block's scratch";
  if (any_of(n, {"__cpu_model", "__cpu_indicator_init", "__cpu_features"}))
    return "a kernel does not ask which machine this is: the target pins the instruction set";
  if (any_of(n, {"printf", "puts", "write", "fopen", "_ZSt4cout", "ostream"})) return "a kernel prints nothing: write into an output";
  if (any_of(n, {"_Unwind", "__gxx_personality", "__cxa_throw", "terminate", "abort", "__assert_fail", "_ZSt"}))
    return "a kernel has no C++ run-time library and no exceptions: remove the call";
  if (any_of(n, {"pthread", "omp", "GOMP", "__kmpc", "fork", "clone"}))
    return "a kernel starts no threads: the plan's grid is spread over the harness's workers";
  if (any_of(n, {"cblas_", "sgemm", "dgemm", "mkl_", "dnnl"})) return "a kernel calls no library: write the computation";
  if (n == "_GLOBAL_OFFSET_TABLE_") return "something is reached through the global offset table: declare it in this file, `static`";
  if (n.starts_with("__") && (n.ends_with("ti3") || n.ends_with("tf3") || n.ends_with("hf2") || n.ends_with("bf2") || n.ends_with("sf2")))
    return "it is a helper of the compiler's own library: avoid 128-bit division, long double and conversions of half types that the "
           "target lacks";
  return "define it in this file; only memcpy, memmove, memset and memcmp are given";
}

std::string device_import_advice(std::string_view n) {
  if (any_of(n, {"printf", "puts"})) return "a kernel prints nothing: write into an output";
  if (any_of(n, {"malloc", "free", "_Znw", "_Zna", "_Zdl", "_Zda"}))
    return "a kernel allocates nothing: use a workspace, or shared memory (`smem` in launch.toml)";
  if (any_of(n, {"__assertfail"})) return "a kernel has no assert: state what must hold in `requires`";
  if (any_of(n, {"cudaCDP", "cudaGraph", "cudaLaunch", "cudaDevice", "cudaStream", "cudaEvent", "cudaGet"}))
    return "there is no device runtime: a kernel launches nothing, write another [[launch]] or loop in a persistent kernel";
  if (any_of(n, {"cublas", "cudnn", "cufft"})) return "a kernel calls no library: write the computation";
  return "define it in kernel.cu: there is no printf, malloc, assert, device-side launch and no other file to link";
}

std::string device_variable_advice(std::string_view n) {
  if (any_of(n, {"__cudart_i2opi"}))
    return "is the table of sinf, cosf, tanf or sincosf for large arguments: use __sinf and __cosf, or sinpif and cospif";
  if (any_of(n, {"cuda3std", "cooperative_groups"}))
    return "comes with a header and has an address, like state: leave out headers that define variables (<cuda/std/array>, "
           "<cooperative_groups/reduce.h>; <cuda/ptx>, <cuda/barrier>, <cuda/atomic>, <cooperative_groups.h> define none)";
  if (n.starts_with("_ZTV")) return "is a table of virtual functions: call functions directly";
  return "is a device variable, which outlives a call: use a workspace (launch.toml), shared memory or a local variable, and "
         "`__constant__` "
         "for a table that never changes";
}

std::string relocation_name(std::uint32_t type) {
  switch (type) {
    case R_X86_64_64:
      return "R_X86_64_64";
    case R_X86_64_32:
      return "R_X86_64_32";
    case R_X86_64_32S:
      return "R_X86_64_32S";
    case R_X86_64_GOTPCREL:
      return "R_X86_64_GOTPCREL";
    case R_X86_64_GOTPCRELX:
      return "R_X86_64_GOTPCRELX";
    case R_X86_64_REX_GOTPCRELX:
      return "R_X86_64_REX_GOTPCRELX";
    case R_X86_64_GOTPC32:
      return "R_X86_64_GOTPC32";
    case R_X86_64_GOTOFF64:
      return "R_X86_64_GOTOFF64";
    case R_X86_64_PC64:
      return "R_X86_64_PC64";
    case R_X86_64_TPOFF32:
      return "R_X86_64_TPOFF32";
    case R_X86_64_TLSGD:
      return "R_X86_64_TLSGD";
    case R_X86_64_TLSLD:
      return "R_X86_64_TLSLD";
    case R_X86_64_GOTTPOFF:
      return "R_X86_64_GOTTPOFF";
    default:
      return "see elf.h";
  }
}

std::string relocation_advice(std::uint32_t type) {
  switch (type) {
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
      return "define the symbol in this file and make it `static`; of memcpy and its like, call them directly";
    case R_X86_64_TPOFF32:
    case R_X86_64_TLSGD:
    case R_X86_64_TLSLD:
    case R_X86_64_GOTTPOFF:
      return "a kernel has no thread-local data";
    case R_X86_64_64:
      return "an absolute address in code: load it from a `static const` table";
    default:
      return "only PC32 and PLT32 in code, and addresses in read-only data, are placed; drop the inline assembly or the code-model "
             "attribute";
  }
}

}  // namespace forge
