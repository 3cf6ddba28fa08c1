# SPDX-License-Identifier: Apache-2.0
"""torch.matmul: cuBLAS as PyTorch calls it, a second opinion beside cuBLASLt's best."""
import torch


def make(inputs, outputs):
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    a, b, c = inputs["A"], inputs["B"], outputs["C"]
    transposed = b.t()
    return lambda: torch.matmul(a, transposed, out=c)


def describe():
    return f"PyTorch {torch.__version__} matmul (cuBLAS {torch.version.cuda}, its first choice)"
