# SPDX-License-Identifier: Apache-2.0
"""torch.topk. Its indices have 64 bits: they are narrowed outside the clock."""
import torch


def make(inputs, outputs):
    x, values = inputs["x"], outputs["values"]
    k = values.shape[-1]
    indices = torch.empty(values.shape, dtype=torch.int64, device=x.device)

    def run():
        torch.topk(x, k, dim=-1, largest=True, sorted=True, out=(values, indices))
        return None, indices  # values are in place

    return run


def describe():
    return f"PyTorch {torch.__version__} topk (sorted; int64 indices narrowed outside the clock)"
