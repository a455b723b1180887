"""Pauses in ``depyf.debug()``, for a test that types the commands. Run: paused.py DUMP"""

import sys

import torch

import depyf


def scaled(x):
    return x * 2


def main(dump):
    compiled = torch.compile(scaled, backend="eager")
    with depyf.prepare_debug(dump):
        compiled(torch.ones(3))
    with depyf.debug():
        first = compiled(torch.ones(3))
        second = compiled(first)
    with depyf.debug(): third = compiled(second)  # noqa: E701  # fmt: skip
    print("RESULT", third.tolist())


main(sys.argv[1])
