"""torch.export in which something is unsound: an operator without a fake kernel, and a test of data."""

import torch
from torch.export import draft_export


@torch.library.custom_op("drafted::twice", mutates_args={})
def twice(a: torch.Tensor) -> torch.Tensor:
    return a * 2


class Sliced(torch.nn.Module):
    def forward(self, x, y):
        n = y.item()
        if n > 2:
            x = x + 1
        return torch.ops.drafted.twice(x)[:n] * 2


if __name__ == "__main__":
    draft_export(Sliced(), (torch.randn(5, 4), torch.tensor(3)))
