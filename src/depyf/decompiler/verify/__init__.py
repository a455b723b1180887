"""Prove that two code objects mean the same, or say where they differ.

This is translation validation (Pnueli, Siegel, Singerman, TACAS 1998; Necula, PLDI 2000): it proves each result of the
decompiler, not the decompiler. The proof is a simulation proof over the product of the two flow graphs. It constructs
a relation between the states of both sides that is a bisimulation up to silent steps; a check
for silent cycles makes it preserve divergence.

May import ``normal``, ``bytecode`` and below. Start reading at ``compare.py``.
"""

from __future__ import annotations

from depyf.decompiler.verify.compare import compare, same_docstring
from depyf.decompiler.verify.comparison import Comparison, Finding

__all__ = ["Comparison", "Finding", "compare", "same_docstring"]
