"""A process of the same launch that has ended keeps its files; those of an earlier launch are replaced."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Optional

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

from depyf.dynamo.dump.chronicle import EndedProcess  # noqa: E402
from depyf.dynamo.store.directory import DumpDirectory  # noqa: E402
from depyf.report.model.manifest import to_json  # noqa: E402
from depyf.report.model.run import Artifact, Run  # noqa: E402

NOW = time.time()


def run(started: float, rank: Optional[int] = None) -> Run:
    graph = Artifact("0", "graph", "graph", path="graph.py")
    return Run(rank=rank, command=("python", "a.py"), started=started, artifacts=(graph,))


def leave(directory: Path, other: Run) -> None:
    (directory / "manifest.json").write_text(to_json(other))
    (directory / "graph.py").write_text("of the other")


def directory_of(path: Path, ours: Run) -> DumpDirectory:
    directory = DumpDirectory.at(path)
    directory.files_of_ended = EndedProcess(str(path), lambda: ours).files
    return directory


@pytest.mark.parametrize(
    ("ours", "other"),
    [
        (run(NOW), run(NOW + 1)),
        (run(NOW, 1), run(NOW - 5, 0)),
        (run(NOW, 0), run(NOW - 5, 1)),
        (run(NOW, 0), run(NOW + 5, 1)),
    ],
)
def test_files_of_the_same_launch_stay(tmp_path: Path, ours: Run, other: Run) -> None:
    leave(tmp_path, other)
    directory = directory_of(tmp_path, ours)
    for name in ("graph.py", "manifest.json", "index.html"):
        path = directory.write(name, "ours")
        assert path is not None
        assert os.path.basename(path) != name
        assert Path(path).read_text() == "ours"
    assert (tmp_path / "graph.py").read_text() == "of the other"
    assert (tmp_path / "manifest.json").read_text() == to_json(other)


@pytest.mark.parametrize(
    ("ours", "other"), [(run(NOW), run(NOW - 1)), (run(NOW, 0), run(NOW - 1, 0)), (run(NOW, 0), run(NOW - 3600, 1))]
)
def test_files_of_an_earlier_launch_are_replaced(tmp_path: Path, ours: Run, other: Run) -> None:
    leave(tmp_path, other)
    directory = directory_of(tmp_path, ours)
    for name in ("graph.py", "manifest.json"):
        assert directory.write(name, "ours") == str(tmp_path / name)
        assert (tmp_path / name).read_text() == "ours"


def test_own_files_are_replaced_by_later_ones(tmp_path: Path) -> None:
    directory = directory_of(tmp_path, run(NOW))
    for text in (to_json(run(NOW)), to_json(run(NOW + 1))):
        assert directory.write("manifest.json", text) == str(tmp_path / "manifest.json")
    assert directory.write("graph.py", "ours") == str(tmp_path / "graph.py")


@pytest.mark.parametrize("text", ["", "{", '{"name": "a web application"}', '{"schema":1,"started":"x"}'])
def test_a_manifest_that_cannot_be_read_is_no_process(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    directory = directory_of(tmp_path, run(NOW))
    assert directory.write("graph.py", "ours") == str(tmp_path / "graph.py")
