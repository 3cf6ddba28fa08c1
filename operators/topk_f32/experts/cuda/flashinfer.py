# SPDX-License-Identifier: Apache-2.0
"""flashinfer's top-k, where the package is installed. Its indices have 64 bits: they are narrowed outside the clock."""
import torch


def make(inputs, outputs):
    import flashinfer

    x, k = inputs["x"], outputs["values"].shape[-1]
    return lambda: flashinfer.top_k(x, k, sorted=True)


def describe():
    import flashinfer

    return f"flashinfer {flashinfer.__version__} top_k (sorted), PyTorch {torch.__version__}"
