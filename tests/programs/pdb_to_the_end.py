"""A program that is debugged to its end, where something of a module is finalized that pdb has not come across.

``os`` outlives ``bdb`` while the interpreter is shut down, and holds it.
"""

import bdb
import os
import sys

import finalized
import torch

import depyf


@torch.compile(backend="eager")
def twice(x):
    return x * 2


with depyf.prepare_debug(sys.argv[1]):
    twice(torch.ones(2))
os.kept = finalized.Finalized.__new__(finalized.Finalized)
os.kept.bdb = bdb
with depyf.debug():
    twice(torch.ones(2))
print("traced to the end:", sys.gettrace() is not None)
