"""Files of a dump that its manifest does not list are shown: the process was killed, or still runs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import List, Sequence

import pytest

from depyf.base.quick_dataclass import replace
from depyf.report.model.counts import counts_of
from depyf.report.model.manifest import to_json
from depyf.report.model.run import Artifact, Compilation, Function, Run, SourceFile
from depyf.report.read.reading import load

TRANSFORMED = """def __transformed_code_0_for_{name}(x):
    return __compiled_fn_{number}(x)[0]

# from {name} ({path}:{line}), compile id {compile_id}
# exact
"""
GRAPH = """# Captured_Graph of __compiled_fn_{number}, compile id {compile_id}
# This file is what runs: a breakpoint in it stops.
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text("def first(x):\n    return x + 1\n\ndef second(x):\n    return x - 1\n")
    return path


def files_of(name: str, line: int, number: int, program: Path, mark: str = "") -> List[str]:
    """Write the files of a compiled function beside the program, in ``dump``; return their names."""
    dump = program.parent / "dump"
    dump.mkdir(exist_ok=True)
    values = {"name": name, "line": line, "number": number, "path": program, "compile_id": f"{number}/0"}
    texts = {
        f"__transformed_code_0_for_{name}{mark}.py": TRANSFORMED.format(**values),
        f"__compiled_fn_{number}.Captured_Graph.0{mark}.py": GRAPH.format(**values),
    }
    for file, text in texts.items():
        (dump / file).write_text(text)
    return list(texts)


def manifest(program: Path, names: Sequence[str], started: float) -> Run:
    run = Run(
        started=started,
        sources=(SourceFile("/elsewhere.py"), SourceFile(str(program), program.read_text())),
        functions=(Function("first", "first", 1, 1, 2),),
        compilations=(Compilation("0/0", 0, graph="__compiled_fn_0"),),
        artifacts=tuple(Artifact(name, "graph", name, "0/0", path=name) for name in names),
    )
    (program.parent / "dump" / "manifest.json").write_text(to_json(run))
    return run


def test_what_was_written_after_the_manifest_is_shown(program: Path) -> None:
    run = manifest(program, files_of("first", 1, 0, program), time.time() - 5)
    (before,) = load([str(program.parent / "dump")])
    assert before.run == run
    names = files_of("second", 4, 1, program)
    (loaded,) = load([str(program.parent / "dump")])
    assert counts_of(loaded.run).graphs == 2
    assert [each.qualified_name for each in loaded.run.functions] == ["first", "second"]
    second = loaded.run.functions[1]
    assert (loaded.run.sources[second.source].path, second.first_line) == (str(program), 4)
    assert [each.function for each in loaded.run.compilations] == [0, 1]
    assert loaded.run.compilations[:1] == run.compilations
    assert {each.path for each in loaded.run.artifacts} > set(names)
    (note,) = loaded.run.notes
    assert note.startswith("2 files are not in the manifest")
    assert all(name in note for name in names)


def test_a_file_of_a_compilation_that_is_known_joins_it(program: Path) -> None:
    names = files_of("first", 1, 0, program)
    manifest(program, names[:1], time.time() - 5)
    (loaded,) = load([str(program.parent / "dump")])
    assert [each.compile_id for each in loaded.run.compilations] == ["0/0"]
    assert [each.path for each in loaded.run.artifacts] == names
    assert loaded.run.notes[0].startswith("1 file is not")


def test_a_compilation_that_the_manifest_met_in_its_middle_is_completed(program: Path) -> None:
    run = manifest(program, files_of("first", 1, 0, program), time.time() - 5)
    begun = Compilation("1/0", None, status="empty", seconds=0.5)
    run = replace(run, compilations=(*run.compilations, begun))
    (program.parent / "dump" / "manifest.json").write_text(to_json(run))
    files_of("second", 4, 1, program)
    (loaded,) = load([str(program.parent / "dump")])
    second = loaded.run.compilations[1]
    assert counts_of(loaded.run).graphs == 2
    assert (second.seconds, second.graph) == (0.5, "__compiled_fn_1")
    assert second.function is not None
    assert loaded.run.functions[second.function].name == "second"


def test_what_an_earlier_run_left_is_not_shown(program: Path) -> None:
    for name in files_of("second", 4, 1, program):
        os.utime(program.parent / "dump" / name, (1e9, 1e9))
    run = manifest(program, files_of("first", 1, 0, program), time.time() - 5)
    (loaded,) = load([str(program.parent / "dump")])
    assert loaded.run == run


def test_a_process_without_a_manifest_is_shown_beside_the_others(program: Path) -> None:
    run = manifest(program, files_of("first", 1, 0, program), time.time() - 5)
    files_of("second", 4, 1, program, ".rank_1")
    first, second = load([str(program.parent / "dump")])
    assert first.run == run
    assert (second.run.origin, second.run.rank) == ("files", 1)
    assert [each.qualified_name for each in second.run.functions] == ["second"]


def test_files_may_be_of_a_manifest_that_is_damaged(program: Path) -> None:
    run = manifest(program, files_of("first", 1, 0, program), time.time() - 5)
    files_of("second", 4, 1, program, ".rank_1")
    (program.parent / "dump" / "manifest.rank_1.json").write_text('{"schema":')
    (loaded,) = load([str(program.parent / "dump")])
    assert replace(loaded.run, notes=()) == run
    assert "left out" in loaded.run.notes[0]
