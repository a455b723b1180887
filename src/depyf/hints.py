"""``Hints`` under its path before 1.0.0, for one release: import it from ``depyf``.

A module of its own: an import path.
"""

from __future__ import annotations

from depyf.decompiler import Hints as Hints
