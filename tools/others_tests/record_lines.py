"""Run CPython's tests of modules, and record which lines of the modules ran. It imports nothing of depyf.

    python tools/others_tests/record_lines.py LINES.json MODULE...

Imports each ``MODULE``, runs ``test.test_MODULE``, and maps the path of each file of the module (of a package: all its
files) to the lines that ran. A line counts when the interpreter reports it to a trace function. A test that sets its
own trace function ends the recording in its thread for the rest of that test.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Set

from record_outcomes import run_tests


class Recorder:
    """A trace function that records the lines of the files below ``roots``."""

    def __init__(self, roots: List[str]) -> None:
        self.lines: Dict[str, Set[int]] = {}
        self._roots = tuple(roots)
        self._wanted: Dict[str, bool] = {}

    def start(self) -> None:
        threading.settrace(self._called)
        sys.settrace(self._called)

    def stop(self) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def _called(self, frame: Any, event: str, argument: Any) -> Optional[Callable[..., Any]]:
        path = frame.f_code.co_filename
        if path not in self._wanted:
            self._wanted[path] = path.startswith(self._roots)
        if not self._wanted[path]:
            return None
        lines = self.lines.setdefault(path, set())

        def local(frame: Any, event: str, argument: Any) -> Any:
            lines.add(frame.f_lineno)
            return local

        lines.add(frame.f_lineno)
        return local


def _root(module: str) -> Optional[str]:
    """Return the file of ``module``, for a package its folder."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return None
    return os.path.dirname(found.origin) + os.sep if found.submodule_search_locations else found.origin


def main() -> int:
    output, *modules = sys.argv[1:]
    recorder = Recorder([root for root in map(_root, modules) if root is not None])
    for module in modules:
        try:
            importlib.import_module(module)
            test = f"test.test_{module.replace('.', '_')}"
            importlib.import_module(test)
        except ImportError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        recorder.start()
        try:
            run_tests(module, [test])
        finally:
            recorder.stop()
    with open(output, "w", encoding="utf-8") as file:
        json.dump({path: sorted(lines) for path, lines in recorder.lines.items()}, file)
    return 0


if __name__ == "__main__":
    # Tests start threads and leave some running; they are no longer needed.
    status = main()
    sys.stdout.flush()
    os._exit(status)
