# SPDX-License-Identifier: Apache-2.0
"""conv2d of PyTorch on channels-last views: cuDNN's choice after PyTorch's own benchmark."""
import torch


def make(inputs, outputs):
    torch.backends.cudnn.benchmark = True
    x, w = inputs["X"].permute(0, 3, 1, 2), inputs["W"].permute(0, 3, 1, 2)
    padding = w.shape[2] // 2
    return lambda: torch.nn.functional.conv2d(x, w, padding=padding).permute(0, 2, 3, 1)


def describe():
    return f"PyTorch {torch.__version__} conv2d (channels last, cuDNN {torch.backends.cudnn.version()} with benchmark)"
