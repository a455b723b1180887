"""``Decompilation`` and ``Verdict`` under their path before 1.0.0, for one release: import them from ``depyf``.

A module of its own: an import path.
"""

from __future__ import annotations

from depyf.decompiler import Decompilation as Decompilation
from depyf.decompiler import Verdict as Verdict
