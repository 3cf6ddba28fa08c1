# SPDX-License-Identifier: Apache-2.0
"""flashinfer's norm, where the package is installed. Its fused form works in place on a sum that is already rounded: another operator."""
import torch


def make(inputs, outputs):
    import flashinfer

    if "residual" in inputs:
        raise NotImplementedError("flashinfer's fused_add_rmsnorm normalises the rounded sum, in place: another operator")
    hidden, weight, output = inputs["hidden_states"], inputs["weight"], outputs["output"]
    return lambda: flashinfer.norm.rmsnorm(hidden, weight, 1e-6, out=output)


def describe():
    import flashinfer

    return f"flashinfer {flashinfer.__version__} norm.rmsnorm, PyTorch {torch.__version__}"
