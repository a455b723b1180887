"""The programs of depyf's documentation: ``python like_documentation.py DIRECTORY [training | all]``.

``training`` has gradients, ``all`` asks for every kind of file.
"""

from __future__ import annotations

import sys
from typing import Any, Dict

import torch

import depyf


@torch.compile
def toy_example(a: Any, b: Any) -> Any:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def main(directory: str, gradients: bool, **options: Any) -> None:
    torch.manual_seed(0)
    with depyf.prepare_debug(directory, **options):
        for _ in range(20):
            result = toy_example(torch.randn(4, requires_grad=gradients), torch.randn(4))
            if gradients:
                result.sum().backward()
    print("ok")


if __name__ == "__main__":
    everything: Dict[str, Any] = {"clean_wild_fx_code": False, "log_bytecode": True}
    main(sys.argv[1], "training" in sys.argv[2:], **(everything if "all" in sys.argv[2:] else {}))
