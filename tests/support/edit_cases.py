"""Programs and findings for tests of edits by text. A module of its own: several files of tests use it."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Callable

from depyf.diagnosis.break_advice import BreakCause
from depyf.fixing.edits import Edit, Project, applied
from depyf.fixing.problems import Problem
from depyf.report.model.run import BREAK, Run


def project_of(folder: Path, source: str, *, compiled: int = 2) -> Project:
    (folder / "train.py").write_text(source, encoding="utf-8")
    return Project(str(folder), "train.py", ["train.py"], Run(), {"train.py": [compiled]})


def problem_at(line: int, cause: BreakCause = BreakCause.BRANCH, frames: int = 1) -> Problem:
    return Problem(BREAK, cause.value, "train.py", line, "", "about", "words", frames=frames)


def edited(project: Project, make: Callable[[Problem, Project], Edit], problem: Problem) -> str:
    edit = make(problem, project)
    return applied(edit.changes, project.source)["train.py"].decode()


def function(body: str) -> str:
    return "import torch\ndef f(x):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
