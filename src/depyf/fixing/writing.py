"""Write the kept edits into the user's files, where git could bring the old ones back.

A module of its own: the one place that changes files of the user.
"""

from __future__ import annotations

import os
import subprocess
from typing import List, Mapping, Sequence, Tuple

from depyf.base.asynchronous import suppressed, synchronous


class NotWrittenError(Exception):
    """Raised where nothing was written; says why."""


def write_files(root: str, before: Mapping[str, bytes], after: Mapping[str, bytes], *, force: bool) -> None:
    """Write all files or none: if one can't be written, those before it get their old content back. A file that has
    changed since it was tried is never written; a file that git does not know as clean needs ``force``. Raises
    ``NotWrittenError`` and ``OSError``."""
    for file in after:
        with open(os.path.join(root, file), "rb") as opened:
            if opened.read() != before[file]:
                raise NotWrittenError(f"{file} has changed while it was tried: run depyf fix again")
        if not force and not _is_clean(root, file):
            raise NotWrittenError(
                f"{file} is not committed in git as it is, so that the edit could not be undone: commit it first, or "
                "use --force. Nothing was written"
            )
    parts: List[Tuple[str, str, str]] = []
    kept: List[str] = []
    try:
        # All that needs room on the disk comes first. What follows only renames.
        for file, source in after.items():
            path = os.path.realpath(os.path.join(root, file))
            new, old = (f"{path}.{os.getpid()}.{end}" for end in ("part", "old.part"))
            for part, content in ((new, source), (old, before[file])):
                with open(part, "xb") as opened:
                    parts += [(path, new, old)] if part == new else []
                    opened.write(content)
                os.chmod(part, os.stat(path).st_mode & 0o7777)
        for path, new, _ in parts:
            os.replace(new, path)
    except BaseException as error:
        _put_back([(path, old) for path, new, old in parts if not os.path.exists(new)], kept, error)
        raise
    finally:
        for part in (part for _, *both in parts for part in both if part not in kept):
            with suppressed(OSError):
                os.unlink(part)


def _put_back(renamed: Sequence[Tuple[str, str]], kept: List[str], cause: BaseException) -> None:
    """Give files their old content again. Where that fails, too, add the file that has it to ``kept``, and raise
    ``NotWrittenError``."""
    left = []
    for path, old in renamed:
        try:
            os.replace(old, path)
        except synchronous(OSError) as error:
            kept.append(old)
            left.append(f"{path} ({error.strerror}; its old text is in {old})")
    if left:
        raise NotWrittenError(
            f"{cause}. These files have the edits now, and can't get them out: {', '.join(left)}"
        ) from cause


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
