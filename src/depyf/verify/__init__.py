"""Are two code objects the same by meaning? ``compare`` answers, see ``depyf.verify.compare``."""

from __future__ import annotations

from depyf.verify.compare import compare
from depyf.verify.comparison import Comparison, Finding

__all__ = ["Comparison", "Finding", "compare"]
