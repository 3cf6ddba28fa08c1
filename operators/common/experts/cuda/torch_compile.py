# SPDX-License-Identifier: Apache-2.0
"""The norms by torch.compile: the definition's formula, written straight into the outputs by one generated kernel.

Two experts, by the name of the file: torch_compile tunes itself when it is made, and once in a while badly (an H200 gave 41, 57 and 95 us
for one shape); torch_compile_untuned takes the compiler's first choice. The gate takes the faster one.
"""
import os

import torch

torch._dynamo.config.cache_size_limit = 1024  # one program a shape


def rmsnorm(hidden_states, weight, output):
    x = hidden_states.to(torch.float32)
    inverse = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6)
    output.copy_(x * inverse * weight.to(torch.float32))


def fused_add_rmsnorm(hidden_states, residual, weight, output, residual_out):
    x = hidden_states.to(torch.float32) + residual.to(torch.float32)
    inverse = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6)
    output.copy_(x * inverse * weight.to(torch.float32))
    residual_out.copy_(x)


MODE = "default" if "untuned" in os.path.basename(__file__) else "max-autotune-no-cudagraphs"


def make(inputs, outputs):
    function = fused_add_rmsnorm if "residual" in inputs else rmsnorm
    compiled = torch.compile(function, mode=MODE, fullgraph=True, dynamic=False)
    arguments = [*inputs.values(), *outputs.values()]
    return lambda: compiled(*arguments)


def describe():
    import triton

    return f"torch.compile {torch.__version__} ({MODE}, Triton {triton.__version__})"
