"""``install`` and ``uninstall`` under the names that they had in depyf 0.20.

A module of its own: a public import path of depyf 0.20.
"""

from __future__ import annotations

from depyf.dynamo.dump.bytecode_log import install, uninstall

__all__ = ["install", "uninstall"]
