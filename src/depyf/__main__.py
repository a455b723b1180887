"""``python -m depyf``: the same as the console script ``depyf``."""

from __future__ import annotations

import sys

from depyf.cli import main

if __name__ == "__main__":
    sys.exit(main())
