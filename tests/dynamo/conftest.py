"""Run small programs in separate processes, with one compile cache for all of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import pytest
import warm_python

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"

RunProgram = Callable[..., str]


@pytest.fixture(scope="session")
def program_environment() -> Dict[str, str]:
    cache = os.path.join(tempfile.gettempdir(), "depyf_tests_compile_cache")
    path = os.pathsep.join([str(ROOT / "src"), str(PROGRAMS)])
    return {
        **os.environ,
        "PYTHONPATH": path,
        "TORCHINDUCTOR_CACHE_DIR": cache,
        "PYTHONHASHSEED": "0",
        # With more threads, Inductor's atomic adds (the backward of an embedding) round differently from run to run.
        "OMP_NUM_THREADS": "1",
    }


@pytest.fixture(scope="session")
def run_program(program_environment: Dict[str, str]) -> RunProgram:
    """``run_program(script, *arguments)`` answers what a program of tests/programs prints; it must succeed."""

    def run(
        script: str, *arguments: Any, stdin: str = "", environment: Optional[Dict[str, str]] = None, flags: str = ""
    ) -> str:
        command = [sys.executable, *flags.split(), str(PROGRAMS / script), *map(str, arguments)]
        variables = {**program_environment, **(environment or {})}
        if warm_python.needs_a_fresh_process(command, variables) is None:
            done = warm_python.run(command, input=stdin, env=variables, timeout=600)
        else:
            done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=600, env=variables)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-6000:]
        return done.stdout

    return run
