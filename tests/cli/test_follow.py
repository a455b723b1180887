"""``DEPYF_DUMP`` and ``depyf run --follow``: each process gets its own folder, however it ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Dict, List, Set

import pytest
import warm_python

from depyf.dynamo.hooks import torch_names
from depyf.report.diff.rank_summary import summary_from_json, summary_of
from depyf.report.model.manifest import from_json
from depyf.report.read.reading import load
from depyf.running import following, start_hook
from depyf.torch_trace import file_names

pytestmark = pytest.mark.torch
SOURCE = Path(following.__file__).parents[2]
AT_START = SOURCE / "depyf" / "running" / "at_start"

PROGRAM = """
import multiprocessing, os, subprocess, sys, torch

def of_the_first(x):
    return x + 1

def of_a_child(x):
    return x * x.sum().item()

def work():
    torch.compile(of_a_child, backend="eager")(torch.ones(2))

def nothing():
    pass

if __name__ == "__main__":
    print(sys.path[0], [name for name in sys.path if "at_start" in name])
    torch.compile(of_the_first, backend="eager")(torch.ones(2))
    for kind in sys.argv[1:]:
        for target in (work, nothing):
            child = multiprocessing.get_context(kind).Process(target=target)
            child.start()
            child.join()
            print(kind, child.exitcode)
"""


def environment(**more: str) -> Dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("DEPYF_", "RANK", "WORLD_SIZE"))}
    return {**kept, "DEPYF_VALUES": "all", "PYTHONPATH": os.pathsep.join([str(AT_START), str(SOURCE)]), **more}


def python(*arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, env=environment(**more), capture_output=True, text=True, timeout=300)


def warm(*arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Where it does not matter when PyTorch is imported."""
    return warm_python.run([sys.executable, *arguments], cwd=cwd, env=environment(**more))


def functions_in(folder: Path) -> Set[str]:
    run = from_json((folder / "manifest.json").read_text())
    return {run.functions[each.function].name for each in run.compilations if each.function is not None}


def folders_in(directory: Path) -> List[str]:
    return file_names.process_folders(str(directory))


def test_forked_and_spawned_children_have_folders_and_those_that_compile_nothing_have_none(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = python("program.py", "fork", "spawn", cwd=tmp_path, DEPYF_DUMP="dump")
    assert done.stdout.splitlines() == [f"{tmp_path} []", *["fork 0"] * 2, *["spawn 0"] * 2]
    folders = folders_in(tmp_path / "dump")
    assert len(folders) == 3
    compiled = sorted(functions_in(tmp_path / "dump" / name) & {"of_the_first", "of_a_child"} for name in folders)
    assert sorted(map(sorted, compiled)) == [["of_a_child"], ["of_a_child"], ["of_the_first"]]
    said = [line for line in done.stderr.splitlines() if line.startswith("depyf: ")]
    assert said[0] == f"depyf: 3 processes dumped into {tmp_path / 'dump'}"
    assert said[-1].endswith(str(tmp_path / "dump" / "index.html"))
    assert len(said) == 5
    names = {each.name for each in load([str(tmp_path / "dump")])}
    assert names == {name.replace("pid", "process ") for name in folders}


def test_run_follows_what_the_program_starts(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import subprocess, sys\n"
        "code = 'import torch; torch.compile(lambda x: x + 1, backend=\"eager\")(torch.ones(2)); print(sys.path[0])'\n"
        "subprocess.run([sys.executable, '-c', 'import sys;' + code])\n"
    )
    done = python("-m", "depyf", "run", "--follow", "-o", "dump", "program.py", cwd=tmp_path, PYTHONPATH=str(SOURCE))
    assert (done.returncode, done.stdout) == (0, "\n")
    assert len(folders_in(tmp_path / "dump")) == 1  # the program itself compiles nothing
    assert f"depyf: 1 process dumped into {tmp_path / 'dump'}" in done.stderr
    assert (tmp_path / "dump" / "index.html").exists()


SERVER = """
import time, torch

def handler(x):
    return x * x.sum().item()

torch.compile(handler, backend="eager")(torch.ones(2))
print("ready", flush=True)
time.sleep(300)
"""


def test_a_program_that_only_starts_others_is_not_said_to_compile_nothing(tmp_path: Path) -> None:
    (tmp_path / "starts.py").write_text("import subprocess, sys\nsubprocess.run([sys.executable, 'program.py'])\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    ran = python("-m", "depyf", "run", "--follow", "-o", "dump", "starts.py", cwd=tmp_path)
    assert "nothing was compiled" not in ran.stderr
    assert "1 process dumped into" in ran.stderr
    (tmp_path / "program.py").write_text("")
    ran = python("-m", "depyf", "run", "--follow", "-o", "other", "starts.py", cwd=tmp_path)
    assert "nothing was compiled" in ran.stderr


def test_what_never_ends_is_reported_while_it_runs_and_when_it_was_killed(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    command = [sys.executable, "server.py"]
    variables = environment(DEPYF_DUMP="dump")
    watch = [sys.executable, "-m", "depyf", "report", "dump", "--watch", "0.2"]
    with open(tmp_path / "said.txt", "w") as said:
        # Tests that run in the background ignore SIGINT, and what they start would inherit that.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        watching = subprocess.Popen(watch, cwd=tmp_path, env=environment(), stdout=said, stderr=said)
        signal.signal(signal.SIGINT, before)
        server = subprocess.Popen(command, cwd=tmp_path, env=variables, stderr=subprocess.DEVNULL)
    try:
        page, deadline = tmp_path / "dump" / "index.html", time.monotonic() + 120
        while not (page.exists() and "graph breaks            1" in (tmp_path / "said.txt").read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert server.poll() is None
    finally:
        server.kill()
        server.wait()
        watching.send_signal(signal.SIGINT)
    assert watching.wait(timeout=60) == 130
    assert "waiting: dump: there is no such file or directory" in (tmp_path / "said.txt").read_text()
    (loaded,) = load([str(tmp_path / "dump")])
    assert loaded.has_manifest
    assert len(loaded.run.breaks) > 0
    assert os.listdir(tmp_path / "dump" / folders_in(tmp_path / "dump")[0] / ".depyf_writers")  # it was killed


def test_a_process_that_is_killed_at_once_leaves_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SERVER.replace("time.sleep(300)", "import os; os.kill(os.getpid(), 9)"))
    assert warm("program.py", cwd=tmp_path, DEPYF_DUMP="dump").returncode == -signal.SIGKILL
    done = warm("-m", "depyf", "report", "dump", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "graphs                  2" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("dump/index.html")


def test_what_a_killed_process_wrote_after_its_manifest_is_shown(tmp_path: Path) -> None:
    lines = (
        "import os, torch",
        "from depyf.dynamo.capture.hub import capture",
        "from depyf.dynamo.dump.manifest import write_manifest",
        "torch.compile(lambda x: x + 1, backend='eager')(torch.ones(2))",
        "write_manifest(capture.current(), at_once=True)",
        "def second(x):",
        "    return x - 1",
        "torch.compile(second, backend='eager')(torch.ones(2))",
        "os.kill(os.getpid(), 9)",
    )
    (tmp_path / "program.py").write_text("\n".join(lines))
    assert warm("program.py", cwd=tmp_path, DEPYF_DUMP="dump").returncode == -signal.SIGKILL
    done = warm("-m", "depyf", "report", "dump", cwd=tmp_path)
    assert "graphs                  2" in done.stdout
    assert re.search(r"note: \d files are not in the manifest: .*__transformed_code_0_for_second.py", done.stdout)


@pytest.mark.slow
def test_ranks_are_named_and_so_are_the_processes_that_they_start(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    for rank in ("0", "1"):
        done = warm("program.py", "spawn", cwd=tmp_path, DEPYF_DUMP="dump", RANK=rank, WORLD_SIZE="2")
        assert done.returncode == 0, done.stderr
    names = folders_in(tmp_path / "dump")
    assert [re.sub(r"\d+$", "N", name) if "pid" in name else name for name in names] == [
        "rank0",
        "rank0_pidN",
        "rank1",
        "rank1_pidN",
    ]
    runs = load([str(tmp_path / "dump")])
    assert sorted(each.name for each in runs if not each.is_child) == ["rank 0", "rank 1"]
    for rank in (0, 1):  # each rank has written its own
        (path,) = (tmp_path / "dump" / f"rank{rank}").glob("rank_summary*.json")
        written = summary_from_json(path.read_text(encoding="utf-8"), str(path))
        (loaded,) = load([str(path.parent)])
        assert replace(written, name="") == replace(summary_of(loaded.side), name="")
        assert written.functions[0].compilations[0].graph


def test_what_compiles_nothing_leaves_nothing_and_is_silent(tmp_path: Path) -> None:
    done = python("-c", "import torch._dynamo; print(1)", cwd=tmp_path, DEPYF_DUMP="dump")
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("flags", [["-O"], []])
def test_a_directory_that_can_not_be_made_costs_one_message(flags: List[str], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "file").write_text("")
    done = python(*flags, "program.py", cwd=tmp_path, DEPYF_DUMP="file/dump")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path} []\n")
    lines = [line for line in done.stderr.splitlines() if "depyf" in line or "dump" in line]
    assert len(lines) == 1
    assert "can't write to the dump directory" in lines[0]


def test_what_compiles_nothing_says_nothing_of_the_dump_of_another_program(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    first = warm("program.py", cwd=tmp_path, DEPYF_DUMP="dump")
    assert "1 process dumped" in first.stderr
    second = warm("-c", "print('here')", cwd=tmp_path, DEPYF_DUMP="dump")
    assert (second.stdout, second.stderr) == ("here\n", "")


@pytest.mark.slow
def test_no_rank_of_many_reads_the_dumps_of_all(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    for rank in ("0", "11"):
        done = warm(
            "-m",
            "depyf",
            "run",
            "-o",
            "dump",
            "program.py",
            cwd=tmp_path,
            RANK=rank,
            WORLD_SIZE="12",
            PYTHONPATH=str(SOURCE),
        )
        assert f"depyf [rank {rank}]: the page of all ranks: depyf report " in done.stderr
        page = "index.html" if rank == "0" else "index.rank_11.html"
        assert f"{page} (rank {rank})\n" in done.stderr
        text = (tmp_path / "dump" / page).read_text(encoding="utf-8")
        assert [each for each in (0, 11) if f'"rank":{each},' in text] == [int(rank)]
    summaries = (tmp_path / "dump").glob("rank_summary*.json")
    assert sorted(json.loads(path.read_text())["rank"] for path in summaries) == [0, 11]


def test_a_rank_that_is_no_number_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in ("\u00b2", "-1", "a", ""):
        assert following.own_folder({"RANK": rank, "WORLD_SIZE": "2"}) == f"pid{os.getpid()}"
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert torch_names.distributed_rank() is None


def test_what_can_not_begin_costs_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = f"import os, subprocess, sys; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); "
    program += "sys.exit(subprocess.call([sys.executable, '-c', 'print(1)'], env={**os.environ, 'DEPYF_DUMP': 'dump'}))"
    done = python("-c", program, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert done.stderr.startswith("depyf: nothing is watched or dumped: FileNotFoundError")
    assert done.stderr.count("\n") == 1


def test_without_pytorch_nothing_happens(tmp_path: Path) -> None:
    code = "import sys; sys.modules['torch'] = None\ntry:\n    import torch\nexcept ImportError:\n    print('none')"
    done = python("-c", code, cwd=tmp_path, DEPYF_DUMP="dump")
    assert (done.stdout, done.stderr) == ("none\n", "")


def test_a_sitecustomize_of_somebody_else_is_still_run(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('theirs', __name__)\nvalue = 1\n")
    path = os.pathsep.join([str(AT_START), str(tmp_path), str(SOURCE)])
    done = python("-c", "import sitecustomize; print(sitecustomize.value)", cwd=tmp_path.parent, PYTHONPATH=path)
    assert (done.stdout, done.stderr) == ("theirs sitecustomize\n1\n", "")


# The hook


def hook_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> List[str]:
    monkeypatch.setattr(start_hook, "folder", lambda *, user: str(folder))
    return start_hook.install_hook(user=False)


def started_with(folder: Path, code: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run code as Python does whose site-packages are that folder."""
    begin = f"import site; site.addsitedir({str(folder)!r}); "
    return python("-c", begin + code, cwd=folder.parent, PYTHONPATH=str(SOURCE), **more)


def test_the_hook_does_nothing_without_the_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    assert sorted(os.path.basename(path) for path in hook_in(folder, monkeypatch)) == sorted(start_hook.FILES)
    code = "import sys; print(sorted(name for name in sys.modules if name.startswith('depyf')))"
    assert started_with(folder, code).stdout == "[]\n"
    assert started_with(folder, code, DEPYF_WATCH="0").stdout == "['depyf_hook']\n"
    assert "'depyf.running.by_environment'" in started_with(folder, code, DEPYF_WATCH="1").stdout


def test_the_hook_is_silent_where_depyf_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    hook_in(folder, monkeypatch)
    gone = "import sys; sys.modules['depyf'] = None; import depyf_hook; depyf_hook.begin(); print(1)"
    done = python("-c", f"import sys; sys.path.append({str(folder)!r}); {gone}", cwd=tmp_path, DEPYF_DUMP="dump")
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_the_hook_dumps_and_is_removed_without_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    hook_in(folder, monkeypatch)
    code = "import torch; torch.compile(lambda x: x + 1, backend='eager')(torch.ones(2))"
    done = started_with(folder, code, DEPYF_DUMP="dump")
    assert done.returncode == 0, done.stderr
    assert len(folders_in(tmp_path / "dump")) == 1
    assert len(start_hook.uninstall_hook(user=False)) == 3
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert start_hook.uninstall_hook(user=False) == []


def test_no_hook_is_written_where_python_does_not_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_hook.site, "ENABLE_USER_SITE", False)
    monkeypatch.setattr(start_hook, "folder", lambda *, user: str(tmp_path))
    with pytest.raises(start_hook.HookError, match="omit --user"):
        start_hook.install_hook(user=True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_somebody_else_is_neither_replaced_nor_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "depyf_hook.pth").write_text("theirs")
    with pytest.raises(start_hook.HookError, match="was not written by depyf"):
        hook_in(tmp_path, monkeypatch)
    assert start_hook.uninstall_hook(user=False) == []
    assert os.listdir(tmp_path) == ["depyf_hook.pth"]


TWO = """
import torch, time

def wanted(x):
    return x * x.sum().item()

def other(x):
    return x - 1

for function in (wanted, other):
    torch.compile(function, backend="eager")(torch.ones(2))
torch._dynamo.reset()
for function in (other, wanted):  # their compile ids are those of the others before
    torch.compile(function, backend="eager")(torch.ones(2))
"""


@pytest.mark.parametrize("pattern", ["wanted", "nothing,program.py:want*"])
def test_only_what_matches_is_dumped(pattern: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TWO)
    done = warm("program.py", cwd=tmp_path, DEPYF_DUMP="dump", DEPYF_ONLY=pattern)
    assert done.returncode == 0, done.stderr
    (folder,) = folders_in(tmp_path / "dump")
    names = os.listdir(tmp_path / "dump" / folder)
    assert "full_code_for_wanted_0.py" in names
    assert not [name for name in names if "other" in name]
    assert functions_in(tmp_path / "dump" / folder) == {"wanted", "torch_dynamo_resume_in_wanted_at_5"}
    assert "1 function compiled as 4 graphs" in done.stderr


def test_what_matches_nothing_leaves_nothing_but_a_message(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TWO)
    done = warm("program.py", cwd=tmp_path, DEPYF_DUMP="dump", DEPYF_ONLY="no_such")
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if "DEPYF" in line or "depyf" in line] == [
        "DEPYF_ONLY=no_such matches none of the functions that this process compiled: program.py:wanted, "
        "program.py:other"
    ]
    assert not (tmp_path / "dump").exists()


def test_a_limit_of_size_ends_the_dump_with_a_message(tmp_path: Path) -> None:
    more = (
        "from depyf.dynamo.capture.hub import capture\n"
        "for _ in range(1200):\n"
        "    if capture.current() is None: break\n"
        "    time.sleep(0.1)\n"
        "torch.compile(lambda x: x + 7, backend='eager')(torch.ones(2))\nprint('end')\n"
    )
    (tmp_path / "program.py").write_text(TWO + more)
    done = warm("program.py", cwd=tmp_path, DEPYF_DUMP="dump", DEPYF_DUMP_LIMIT="0.001")
    assert (done.returncode, done.stdout) == (0, "end\n")
    assert done.stderr.count("have reached 0.001 MB (DEPYF_DUMP_LIMIT)") == 1
    (folder,) = folders_in(tmp_path / "dump")
    assert "lambda" not in " ".join(os.listdir(tmp_path / "dump" / folder))
    assert "have reached 0.001 MB (DEPYF_DUMP_LIMIT)" in (tmp_path / "dump" / folder / "index.md").read_text()


def test_a_damaged_manifest_of_one_process_is_named_and_costs_the_others_nothing(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    assert warm("program.py", cwd=tmp_path, DEPYF_DUMP="dump", RANK="0", WORLD_SIZE="2").returncode == 0
    shutil.copytree(tmp_path / "dump" / "rank0", tmp_path / "dump" / "rank1")
    manifest = next((tmp_path / "dump" / "rank1").glob("manifest*.json"))
    for path in (tmp_path / "dump" / "rank1").iterdir():
        if path != manifest and path.is_file():
            path.unlink()
    manifest.write_text(manifest.read_text()[:300])
    (loaded,) = load([str(tmp_path / "dump")])
    assert loaded.run.rank == 0
    assert any("left out" in note and "rank1" in note for note in loaded.run.notes)


def test_a_limit_that_is_no_number_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    ran = warm("program.py", cwd=tmp_path, DEPYF_DUMP="dump", DEPYF_DUMP_LIMIT="500MB")
    assert ran.returncode == 0
    assert ran.stderr.count("DEPYF_DUMP_LIMIT=500MB is not a number of megabytes") == 1


AGAIN = """
import subprocess, sys, torch

def compiled(x):
    return x + len(sys.argv)

if sys.argv[1:] != ["nothing"]:
    torch.compile(compiled, backend="eager")(torch.ones(2))
if len(sys.argv) < 2:
    subprocess.run([sys.executable, __file__, "child"])
"""


@pytest.mark.slow
def test_a_second_run_into_the_directory_shows_its_own_processes(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(AGAIN)
    (tmp_path / "other.py").write_text("import runpy, sys; sys.argv.append('other'); runpy.run_path('program.py')")
    first, second = (warm("program.py", cwd=tmp_path, DEPYF_DUMP="dump") for _ in range(2))
    assert "earlier launch" not in first.stderr
    assert "depyf: 2 processes dumped into" in second.stderr
    left = re.search(r"depyf: folders of an earlier launch are not shown: (pid\d+, pid\d+)\n", second.stderr)
    assert left is not None
    assert len(folders_in(tmp_path / "dump")) == 4, "nothing is removed"
    shown = {each.name.replace("process ", "pid") for each in load([str(tmp_path / "dump")])}
    assert shown == set(folders_in(tmp_path / "dump")) - set(left.group(1).split(", "))
    warm("other.py", cwd=tmp_path, DEPYF_DUMP="dump")
    assert len(load([str(tmp_path / "dump")])) == 3, "another program is no repetition"


@pytest.mark.slow
def test_a_rank_that_is_killed_does_not_show_what_it_compiled_before(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(AGAIN)
    (tmp_path / "killed.py").write_text(
        "import os, torch\ntorch.compile(lambda x: x - 1, backend='eager')(torch.ones(2))\nos.kill(os.getpid(), 9)\n"
    )
    variables = {"DEPYF_DUMP": "dump", "RANK": "0", "WORLD_SIZE": "1"}
    warm("program.py", cwd=tmp_path, **variables)
    names = [each.name.split(" process")[0] for each in load([str(tmp_path / "dump")])]
    assert names == ["rank 0", "rank 0"]
    warm("killed.py", cwd=tmp_path, **variables)
    (loaded,) = load([str(tmp_path / "dump" / "rank0")])
    assert loaded.run.origin == "files"


def test_what_ends_by_os_exit_has_written_its_manifest(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        SERVER.replace('print("ready", flush=True)\ntime.sleep(300)', "import os\nos._exit(7)")
    )
    done = warm("program.py", cwd=tmp_path, DEPYF_DUMP="dump")
    assert (done.returncode, done.stderr.count("depyf")) == (7, 0)
    (loaded,) = load([str(tmp_path / "dump")])
    assert (loaded.run.origin, len(loaded.run.breaks)) == ("prepare_debug", 1)


def test_ctrl_c_while_the_manifest_is_written_keeps_no_process_alive(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        SERVER.replace(
            'print("ready", flush=True)\ntime.sleep(300)',
            "import os, threading\n"
            "def join(self, timeout=None):\n    raise KeyboardInterrupt\n"
            "threading.Thread.join = join\n"
            "os._exit(7)",
        )
    )
    assert python("program.py", cwd=tmp_path, DEPYF_DUMP="dump").returncode == 7


@pytest.mark.slow
def test_compiled_code_is_checked_because_the_environment_says_so(tmp_path: Path) -> None:
    code = """
from depyf.running.by_environment import begin; begin()
import torch
now = a = object()
compiled = torch.compile(lambda x: x + 1 if now is a else x - 1, backend="eager")
for now in (a, object()):
    print(compiled(torch.ones(2)).tolist())
"""
    (tmp_path / "program.py").write_text(code)
    done = warm("program.py", cwd=tmp_path, DEPYF_SHADOW="1")
    assert (done.returncode, done.stdout) == (0, "[2.0, 2.0]\n[2.0, 2.0]\n"), done.stderr
    assert "depyf shadow: stale <lambda> [0/0] program.py:5: now was a, is <object at 0x" in done.stderr
    assert "depyf shadow: 1 of 2 calls of compiled functions checked: 1 stale finding" in done.stderr
