"""The command line works without PyTorch, and prints source that can be piped."""

from __future__ import annotations

import ast
import contextlib
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from depyf.cli import main
from depyf.decompiler.bytecode.opcode_table import known_versions, running_version

PYCS = Path(__file__).resolve().parent.parent / "decompiler" / "bytecode" / "pycs"
SOURCE = 'def f(a):\n    """Text."""\n    assert a\n    return a + 1\n'


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_neither_the_package_nor_the_command_line_loads_torch() -> None:
    done = python("-c", "import sys, depyf, depyf.cli, depyf.decompiler; print('torch' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


def test_decompile_prints_source_to_the_output_and_the_verdict_to_the_error_stream() -> None:
    done = python("-m", "depyf", "decompile", "heapq:heappush")
    assert done.returncode == 0, done.stderr
    assert isinstance(ast.parse(done.stdout).body[0], ast.FunctionDef)
    assert "exact" in done.stderr


def test_decompile_prints_a_whole_module() -> None:
    done = python("-m", "depyf", "decompile", "colorsys")
    assert done.returncode == 0, done.stderr
    names = [node.name for node in ast.parse(done.stdout).body if isinstance(node, ast.FunctionDef)]
    assert names[:2] == ["rgb_to_yiq", "yiq_to_rgb"]


def test_decompile_can_show_the_bytecode_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decompile", "heapq:heappush", "--bytecode"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("LOAD_GLOBAL") < printed.index("def heappush")


@pytest.mark.parametrize("target", ["heapq:no_such_function", "no_such_module", "no_such_file.py"])
def test_a_target_that_does_not_exist_is_said_in_one_line(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decompile", target]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_sweep_of_small_modules_proves_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "colorsys", "bisect", "heapq", "-j", "2"]) == 0, capsys.readouterr().out
    assert "100.00%" in capsys.readouterr().out


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "module.py"
    path.parent.mkdir()
    path.write_text(SOURCE)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_a_pyc_file_is_decompiled_like_its_source(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyc = py_compile.compile(str(source), doraise=True)
    from_source, from_pyc = run(capsys, "decompile", source), run(capsys, "decompile", pyc)
    assert from_source[:2] == from_pyc[:2] == (0, SOURCE.rstrip() + "\n")
    assert run(capsys, "decompile", f"{pyc}:f")[1] == SOURCE
    renamed = source.with_suffix(".dat")
    shutil.copy(pyc, renamed)
    assert run(capsys, "decompile", renamed)[1] == SOURCE


@pytest.mark.parametrize(
    ("level", "expected"),
    [(1, SOURCE.replace("    assert a\n", "")), (2, "def f(a):\n    return a + 1\n")],
)
def test_optimized_code_lacks_what_the_optimization_took(
    level: int, expected: str, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyc = py_compile.compile(str(source), doraise=True, optimize=level)
    assert f".opt-{level}.pyc" in pyc
    assert run(capsys, "decompile", pyc)[:2] == (0, expected)


@pytest.mark.parametrize("version", [version for version in known_versions() if version > running_version()], ids=str)
def test_a_newer_pyc_says_which_python_proves_it(version: tuple[int, int], capsys: pytest.CaptureFixture[str]) -> None:
    name, path = "{}.{}".format(*version), PYCS / f"cp{version[0]}{version[1]}.pyc"
    status, out, err = run(capsys, "decompile", path, "--python", "none")
    assert status == 1
    assert "def method(self):" in out
    assert f"it takes CPython {name} to compile the text" in err
    status, out, err = run(capsys, "decompile", "--dis", path)
    assert f"CPython {name}" in out


def test_the_verdict_can_be_the_last_line(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "decompile", source, "--verdict")[1].splitlines()[-1] == "# depyf: exact"


def test_the_source_goes_to_a_file(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "new" / "out.py"
    status, out, _err = run(capsys, "decompile", source, "-o", target)
    assert (status, out, target.read_text()) == (0, "", SOURCE)
    assert os.listdir(target.parent) == ["out.py"]


def test_a_folder_becomes_a_tree_of_sources(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inner = source.parent / "inner"
    inner.mkdir()
    for level in (0, 1):
        cached = inner / "__pycache__" / f"sourceless.cpython-311{'.opt-1' * level}.pyc"
        py_compile.compile(str(source), str(cached), doraise=True, optimize=level)
    py_compile.compile(str(source), str(source.parent / "legacy.pyc"), doraise=True)
    py_compile.compile(str(source), doraise=True)  # has its source beside it
    out = tmp_path / "out"
    status, printed, _ = run(capsys, "decompile", source.parent, "-o", out, "-j", "2")
    assert status == 0
    assert "100.00%" in printed
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert files == ["inner/sourceless.py", "legacy.py", "module.py"]
    assert {(out / file).read_text() for file in files} == {SOURCE}


def test_what_is_wrong_in_a_folder_is_said_and_the_rest_is_done(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (source.parent / "broken.py").write_text("def (:")
    (source.parent / "broken.pyc").write_bytes(b"nothing")
    (source.parent / "cut.pyc").write_bytes((PYCS / "cp311.pyc").read_bytes()[:100])
    status, printed, _ = run(capsys, "decompile", source.parent, "-o", tmp_path / "out", "-j", "1")
    assert status == 1
    assert "broken.py: SyntaxError" in printed
    assert "cut.pyc: malformed marshal data" in printed
    assert (tmp_path / "out" / "module.py").read_text() == SOURCE


@pytest.mark.parametrize(
    "arguments",
    [
        ["decompile", "{folder}"],
        ["decompile", "{empty}", "-o", "{folder}"],
        ["decompile", "{folder}/module.py", "-o", "{folder}/module.py/x"],
        ["decompile", "{folder}", "-o", "{folder}/module.py"],
        ["decompile", "{folder}/none.pyc"],
        ["decompile", "sys"],
        ["decompile", "re.nothing"],
        ["sweep", "--compare", "{folder}/module.py", "heapq"],
        ["sweep"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: list[str], source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    status, out, err = run(capsys, *(text.format(folder=source.parent, empty=tmp_path / "empty") for text in arguments))
    assert (status, out, len(err.splitlines())) == (2, "", 1), err


@pytest.mark.parametrize(
    "arguments", [["decompile"], ["nothing"], [], ["sweep", "--kinds", "x", "heapq"], ["sweep", "--name", "(", "heapq"]]
)
def test_wrong_usage_has_exit_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: depyf" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="needs a shell and /dev/full")
@pytest.mark.parametrize(
    ("redirection", "status", "error"),
    [(">&-", 0, ""), ("2>&-", 0, ""), ("> /dev/full", 2, "depyf: No space left on device\n"), ("| true", 0, "")],
)
def test_closed_and_full_outputs_leave_no_traceback(redirection: str, status: int, error: str) -> None:
    done = subprocess.run(
        f"{sys.executable} -m depyf decompile heapq {redirection}",
        shell=True, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == status
    assert [line for line in done.stderr.splitlines(True) if "<module>: " not in line] == error.splitlines(True)


# --- nothing is lost, and nothing is waited for ----------------------------------------------------------------------


def test_sources_are_never_written_onto_what_is_decompiled(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = source.parent
    py_compile.compile(str(source), str(folder / "other.pyc"), doraise=True)
    for arguments in (["-o", folder], ["-f", "-o", folder], ["--force", "-o", folder / ".." / folder.name]):
        status, _, err = run(capsys, "decompile", folder, *arguments)
        assert status == 2
        assert "module.py: would replace the input" in err
    link = folder.parent / "link.py"
    link.symlink_to(source)
    for target in (source, link):
        status, _, err = run(capsys, "decompile", source, "--force", "-o", target)
        assert (status, "would replace" in err) == (2, True)
    assert source.read_text() == SOURCE
    assert sorted(os.listdir(folder)) == ["module.py", "other.pyc"]


def test_files_that_are_there_are_replaced_only_by_force(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "module.py").write_text("mine")
    for arguments in (["decompile", source.parent, "-o", out], ["decompile", source, "-o", out / "module.py"]):
        status, _, err = run(capsys, *arguments)
        assert (status, "exists already" in err) == (2, True)
        assert (out / "module.py").read_text() == "mine"
        assert run(capsys, *arguments, "--force")[0] == 0
        assert (out / "module.py").read_text() == SOURCE
        (out / "module.py").write_text("mine")


def test_sources_go_to_a_device(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "decompile", source, "-o", "/dev/null")[0] == 0


def test_what_cannot_be_read_costs_no_tree(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = source.parent
    (folder / "dangling.py").symlink_to(folder / "nowhere.py")
    os.mkfifo(folder / "pipe.py")
    (folder / "endless.pyc").symlink_to("/dev/zero")
    with contextlib.suppress(OSError):  # a file system that wants names in UTF-8
        Path(os.fsdecode(os.fsencode(folder) + b"/n\xff.py")).write_text(SOURCE)
    status, printed, _ = run(capsys, "decompile", folder, "-o", tmp_path / "out", "-j", "1")
    assert status == 1
    assert "3 can't be read" in printed
    assert "dangling.py" in printed
    assert "pipe.py: not a regular file" in printed
    assert "endless.pyc: not a regular file" in printed
    assert (tmp_path / "out" / "module.py").read_text() == SOURCE
    assert len(os.listdir(tmp_path / "out")) == len(os.listdir(folder)) - 3
    assert run(capsys, "sweep", folder, "-j", "1")[0] == 1


@pytest.mark.parametrize("name", ["pipe.py", "/dev/zero"])
def test_a_pipe_or_a_device_is_no_module(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    if not path.exists():
        os.mkfifo(path)
    status, _, err = run(capsys, "decompile", path)
    assert (status, err) == (2, f"depyf: {path}: not a regular file\n")


def test_time_and_memory_are_limited_for_one_module_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = tmp_path / "large.py"
    large.write_text("x = [" + "f(1)," * 300_000 + "]\n")
    status, _, err = run(capsys, "decompile", large, "--timeout", "0.5")
    assert (status, err) == (1, f"depyf: {large}: not done in 0.5 s of CPU time (--timeout)\n")
    status, _, err = run(capsys, "decompile", large, "--memory", "20")
    assert status in (1, 2)
    assert "MemoryError" in err or "needs more than 20 MiB" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rnu x.py", "depyf: error: there is no command 'rnu'; did you mean run?"),
        ("why", "depyf: error: why is no command, but a function: depyf.why; depyf docs api explains it"),
        ("xyzzy", "depyf: error: there is no command 'xyzzy'; there are run, worth, shadow, "),
        ("run --folow x.py", "depyf run: error: there is no option --folow; did you mean --follow?"),
        ("report a --perfeto=x", "depyf report: error: there is no option --perfeto=x; did you mean --perfetto?"),
        ("decompile a b", "depyf decompile: error: too many arguments: b"),
        ("diff a", "depyf diff: error: the following arguments are required: DIR_B"),
    ],
)
def test_a_mistake_is_reported_with_the_usage_of_its_command(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(words.split())
    usage, _, error = capsys.readouterr().err.rpartition("\ndepyf")
    assert raised.value.code == 2
    assert f"depyf{error}".startswith(message)
    assert usage.startswith("usage: " + message.partition(":")[0])


def test_a_sweep_of_nothing_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "sweep", tmp_path) == (2, "", f"depyf: {tmp_path}: no .py or .pyc files in it\n")
