"""Prove that two code objects behave the same: start at ``compare.py``."""

from __future__ import annotations

from depyf.verify.compare import compare
from depyf.verify.comparison import Comparison, Finding

__all__ = ["Comparison", "Finding", "compare"]
