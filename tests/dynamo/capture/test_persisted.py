"""What PyTorch persists beyond the process is the same as without a session: it names no file of the dump."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import List

import pytest
import warm_python

pytestmark = pytest.mark.torch
pytest.importorskip("torch._dynamo.package")

PROGRAM = """
import sys, torch
torch._dynamo.config.caching_precompile = True

def inner(x):
    return x.sin() + 1

def function(x):
    y = inner(x)
    print("broken here")
    return y.sum()

def run():
    torch.compile(function, backend="eager")(torch.ones(3))

if sys.argv[1:]:
    import depyf
    with depyf.prepare_debug(sys.argv[1]):
        run()
        saved = torch.compiler.save_cache_artifacts()
else:
    run()
    saved = torch.compiler.save_cache_artifacts()
with open("saved", "wb") as file:
    file.write(saved[0] if saved else b"")
"""


def run(folder: Path, *arguments: str) -> List[Path]:
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    environment = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"), "PATH": ""}
    environment["PYTHONPATH"] = str(Path(__file__).parents[3] / "src")
    done = warm_python.run([sys.executable, "program.py", *arguments], cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return [folder / "saved", *(path for path in (folder / "cache").rglob("*") if path.is_file())]


def test_nothing_that_is_saved_names_a_file_of_the_dump(tmp_path: Path) -> None:
    without = run(tmp_path / "without")
    if not without[0].read_bytes():
        pytest.skip("this PyTorch saves nothing of a program with this backend")
    files = run(tmp_path / "with", "dump_of_a_test")
    assert any("__transformed_code" in path.name for path in (tmp_path / "with" / "dump_of_a_test").iterdir())
    assert [path for path in files if b"dump_of_a_test" in path.read_bytes()] == []
    assert [path for path in files if b"__transformed_code" in path.read_bytes()] == []
    assert any(b"program.py" in path.read_bytes() for path in files), "the code of the program is in them"
    assert len(files) == len(without)
