"""Prove that two code objects mean the same, or say where they differ.

This is translation validation (Pnueli, Siegel, Singerman, TACAS 1998; Necula, PLDI 2000): not the decompiler is proved,
but each of its results. The proof is a simulation proof over the product of both flow graphs. It constructs a relation
between the states of both sides that is a bisimulation up to steps that nobody can observe, and ``progress`` makes it
preserve divergence.

May import ``normal``, ``bytecode`` and below. Start reading at ``compare.py``.
"""

from __future__ import annotations

from depyf.verify.compare import compare, same_docstring
from depyf.verify.comparison import Comparison, Finding

__all__ = ["Comparison", "Finding", "compare", "same_docstring"]
