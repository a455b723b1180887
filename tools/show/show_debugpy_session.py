"""Debug a compiled training step as an editor does, and print the transcript.

    python tools/show/show_debugpy_session.py                    # aot_eager (graphs), then inductor (kernels)
    python tools/show/show_debugpy_session.py aot_eager --autograds-thread
    python tools/show/show_debugpy_session.py eager --listing    # a frame that is not decompiled

The program is tests/programs/stepped.py, the editor tests/support/dap.py: it uses the Debug Adapter Protocol with
debugpy. Lines with ``>`` are the editor's requests.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import List

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from dap import launched
from stops import CAPTURED, LISTING, STOPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backends", nargs="*", help="eager, aot_eager, inductor (the last two)")
    parser.add_argument("--autograds-thread", action="store_true", help="the backward runs in a thread of autograd's")
    parser.add_argument("--listing", action="store_true", help="nothing can be decompiled (with eager)")
    options = parser.parse_args()
    flags = [f"--{name}" for name in ("autograds-thread", "listing") if getattr(options, name.replace("-", "_"))]
    for backend in options.backends or ["aot_eager", "inductor"]:
        print(f"--- {' '.join([backend, *flags])}")
        show(backend, flags)


def show(backend: str, flags: List[str]) -> None:
    """Go from stop to stop, with a step at the end, and print the editor's requests and the responses."""
    stops = [LISTING, CAPTURED] if "--listing" in flags else STOPS[backend]
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder).resolve() / "dump"
        program = [str(ROOT / "tests" / "programs" / "stepped.py"), backend, str(dump), *flags]
        environment = {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
        with launched(program, environment=environment, show=[str(dump), str(ROOT)]) as editor:
            try:
                editor.request("configurationDone")
                pause = editor.stopped()
                for stop in stops:
                    path, line = stop.place(dump)
                    editor.set_breakpoints(str(path), [line])
                editor.resume("continue", pause)
                for stop in stops:
                    stopped = editor.stopped()
                    editor.variables(stopped)
                    if stop in (stops[-1], LISTING):
                        stopped = editor.step("next", stopped)
                    editor.resume("continue", stopped)
                editor.finished()
            finally:
                print("\n".join(editor.transcript))


if __name__ == "__main__":
    main()
