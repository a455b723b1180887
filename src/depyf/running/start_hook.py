"""``depyf install-hook``: files in site-packages that make every Python that starts there check the environment.

Up to Python 3.14 a line of ``depyf_hook.pth`` is run at startup; from 3.15 on ``depyf_hook.start`` names a function
(PEP 829), and that line is ignored if both exist. Neither does anything without one of ``VARIABLES``.
"""

from __future__ import annotations

import importlib.util
import os
import site
import sysconfig
from typing import Dict, List

from depyf.base.asynchronous import suppressed, synchronous

MARK = "# Written by `depyf install-hook`; `depyf uninstall-hook` removes it.\n"

VARIABLES = ("DEPYF_DUMP", "DEPYF_WATCH", "DEPYF_SHADOW", "DEPYF_ATTACH")

_MODULE = f'''{MARK}
import os


def begin():
    """Begin what the environment asks for: without these variables, nothing."""
    if any(os.environ.get(name, "0") not in ("", "0") for name in {VARIABLES!r}):
        try:
            from depyf.running.by_environment import begin
        except ImportError:  # depyf was removed
            return
        begin()
'''

FILES: Dict[str, str] = {
    "depyf_hook.py": _MODULE,
    # The variables are checked here, too: an import takes longer than everything else.
    "depyf_hook.pth": f"{MARK}import os; any(map(os.environ.get, {VARIABLES!r})) and "
    "__import__('depyf_hook').begin()\n",
    "depyf_hook.start": f"{MARK}depyf_hook:begin\n",
}
"""The files in the order in which they are written: the module that the others name comes first."""


class HookError(Exception):
    """Raised when the hook can't be installed or removed; names the reason."""


def folder(*, user: bool) -> str:
    """Return the folder of the files: the site-packages of this Python, or the user's."""
    return site.getusersitepackages() if user else sysconfig.get_path("purelib")


def install_hook(*, user: bool) -> List[str]:
    """Write the files; return their paths. Raises ``HookError`` if one is not depyf's or can't be written."""
    where = folder(user=user)
    if user and not site.ENABLE_USER_SITE:
        raise HookError(f"{where}: this Python does not use it (as in a virtual environment); omit --user")
    paths = [os.path.join(where, name) for name in FILES]
    for path in paths:
        if os.path.lexists(path) and not _is_ours(path):
            raise HookError(f"{path} exists, and was not written by depyf")
    try:
        os.makedirs(where, exist_ok=True)
        for path, text in zip(paths, FILES.values()):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    except synchronous(OSError) as error:
        raise HookError(f"{where}: can't write there ({error.strerror}); try --user") from error
    return paths


def uninstall_hook(*, user: bool) -> List[str]:
    """Remove the files that exist; return their paths. Raises ``HookError`` if one can't be removed."""
    removed = []
    for name in reversed(list(FILES)):
        path = os.path.join(folder(user=user), name)
        if os.path.lexists(path) and _is_ours(path):
            try:
                os.unlink(path)
                if path.endswith(".py"):
                    with suppressed(OSError):
                        os.unlink(importlib.util.cache_from_source(path))
            except synchronous(OSError) as error:
                raise HookError(f"{path}: can't be removed ({error.strerror})") from error
            removed.append(path)
    return removed


def _is_ours(path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().startswith(MARK)
    except synchronous(OSError, ValueError):
        return False
