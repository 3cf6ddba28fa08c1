import torch
import torch.nn as nn
M, N = 128, 64
SHAPE = (4, 8)  # "tuple"
class Model(nn.Module):
    """text with class Model"""
    def __init__(self, k: int = 3):
        super().__init__()
        self.k = k
    def forward(self, x: torch.Tensor, y) -> torch.Tensor:
        return torch.relu(x @ y)
def get_inputs():
    x = torch.rand(M, N, dtype=torch.float16)
    y = torch.randn((N, 2 * M)).half() * 2
    return [x, y]
def get_init_inputs():
    return [3]
