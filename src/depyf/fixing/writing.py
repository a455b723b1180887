"""Write the kept edits into the user's files, where git could bring the old ones back.

A module of its own: the one place that changes files of the user.
"""

from __future__ import annotations

import os
import subprocess
from typing import Mapping

from depyf.base.asynchronous import synchronous


class NotWrittenError(Exception):
    """Raised where nothing was written; says why."""


def write_files(root: str, before: Mapping[str, bytes], after: Mapping[str, bytes], *, force: bool) -> None:
    """Write all files or none. A file that has changed since it was tried is never written; a file that git does not
    know as clean needs ``force``. Raises ``NotWrittenError`` and ``OSError``."""
    for file in after:
        with open(os.path.join(root, file), "rb") as opened:
            if opened.read() != before[file]:
                raise NotWrittenError(f"{file} has changed while it was tried: run depyf fix again")
        if not force and not _is_clean(root, file):
            raise NotWrittenError(
                f"{file} is not committed in git as it is, so that the edit could not be undone: commit it first, or "
                "use --force. Nothing was written"
            )
    parts = {}
    try:
        for file, source in after.items():
            path = os.path.realpath(os.path.join(root, file))
            part = f"{path}.{os.getpid()}.part"
            with open(part, "xb") as opened:
                parts[part] = path
                opened.write(source)
            os.chmod(part, os.stat(path).st_mode & 0o7777)
        for part, path in parts.items():
            os.replace(part, path)
    finally:
        for part in parts:
            if os.path.exists(part):
                os.unlink(part)


def _is_clean(root: str, file: str) -> bool:
    """Return whether git tracks a file, and has it as it is."""
    try:
        known, changed = (
            subprocess.run(
                ["git", *words, "--", file], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
            )
            for words in (("ls-files", "--error-unmatch"), ("status", "--porcelain"))
        )
    except synchronous(OSError):  # there is no git
        return False
    return known.returncode == 0 and changed.returncode == 0 and not changed.stdout.strip()
