"""Input of unknown origin is read and never run, has no effect outside of itself, and terminates (SECURITY.md)."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
from sample_runs import sample_run

from depyf.cli import main
from depyf.report.model.manifest import to_json

LOG = Path(__file__).resolve().parent.parent / "report" / "logs" / "torch_2_13.log.gz"
HEAD = "V1123 12:00:00.123000 123 torch/_dynamo/convert_frame.py:12] "
SECRET = "the secret of this machine"
ESCAPES = "\x1b]0;pwned\x07\x1b[2J\u202e</script><script>window.pwned=1</script>"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the user's that a stranger knows the first line of."""
    path = tmp_path / "secret.txt"
    path.write_text(f"root:x:0:0\n{SECRET}\n")
    return path


def report(capsys: pytest.CaptureFixture[str], *paths: object) -> Tuple[int, str]:
    """The exit status of ``depyf report``, and what it prints on both streams."""
    status = main(["report", *map(str, paths)])
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def log_of(records: List[Tuple[Dict[str, Any], str]]) -> str:
    lines = []
    for record, payload in records:
        lines.append(HEAD + json.dumps({**record, **({"has_payload": True} if payload else {})}))
        lines += [f"\t{line}" for line in payload.splitlines()]
    return "\n".join(lines) + "\n"


def compiled(path: str, code: str = "root:x:0:0", line: object = 1) -> List[Tuple[Dict[str, Any], str]]:
    """Records of a log in which a function of the file ``path`` was compiled."""
    ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
    stack = [{"line": line, "name": "f", "filename": 0, "loc": code}]
    metrics = {"compile_id": "0/0", "co_name": "f", "co_filename": path, "co_firstlineno": line}
    return [
        ({"str": [path, 0]}, ""),
        ({"dynamo_start": {"stack": stack}, **ids}, ""),
        ({"compilation_metrics": metrics, **ids}, ""),
    ]


def everything(folder: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in folder.iterdir() if path.is_file())


def test_a_log_makes_no_page_of_files_that_it_names(capsys: Any, tmp_path: Path, secret: Path) -> None:
    for number, code in enumerate(("root:x:0:0", "")):  # a quoted line that is there, and none
        log = tmp_path / f"{number}.log"
        log.write_text(log_of(compiled(str(secret), code)))
        status, _ = report(capsys, log, "-o", tmp_path / f"page_{number}")
        assert status == 0
        assert SECRET not in everything(tmp_path / f"page_{number}")


def test_a_source_file_that_is_here_is_shown(capsys: Any, tmp_path: Path) -> None:
    """What the files above are refused for is possible: a log of this machine shows the program."""
    program = tmp_path / "program.py"
    program.write_text("def f(x):\n    return x  # shown\n")
    (tmp_path / "a.log").write_text(log_of(compiled(str(program), "def f(x):")))
    assert report(capsys, tmp_path / "a.log", "-o", tmp_path / "page")[0] == 0
    assert "return x  # shown" in (tmp_path / "page" / "manifest.json").read_text()


def test_a_dump_makes_no_page_of_files_that_it_names(capsys: Any, tmp_path: Path, secret: Path) -> None:
    dump = tmp_path / "dump"
    dump.mkdir()
    text = f"def __transformed_code_0_for_f(x):\n    return x\n\n\n# from f ({secret}:1), compile id 0/0\n# exact:\n"
    (dump / "__transformed_code_0_for_f.py").write_text(text)
    (dump / "__compiled_fn_1.Captured_Graph.0.py").symlink_to(secret)
    assert report(capsys, dump)[0] == 0
    assert SECRET not in everything(dump).replace(secret.read_text(), "", 1)  # what the link itself leads to


@pytest.mark.parametrize("path", ["../secret.txt", "{secret}", "link.txt", "..", ".", "", "a/../../secret.txt", "a\0b"])
def test_a_manifest_names_files_of_its_directory(capsys: Any, tmp_path: Path, secret: Path, path: str) -> None:
    dump, page = tmp_path / "dump", tmp_path / "page"
    dump.mkdir()
    (dump / "link.txt").symlink_to(secret)
    data = json.loads(to_json(sample_run()[0]))
    for artifact in data["artifacts"]:
        artifact.pop("text", None)
        artifact["path"] = path.format(secret=secret)
    (dump / "manifest.json").write_text(json.dumps(data))
    assert report(capsys, dump, "-o", page)[0] == 0
    assert SECRET not in everything(page)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_nothing_waits_for_a_pipe_or_reads_a_device(capsys: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    for name in ("pipe.py", "zero.py"):
        (tmp_path / "a.log").write_text(log_of(compiled(str(tmp_path / name))))
        assert report(capsys, tmp_path / "a.log", "-o", tmp_path / "page")[0] == 0


def test_nothing_printed_moves_the_cursor(capsys: Any, tmp_path: Path) -> None:
    data = json.loads(to_json(sample_run()[0]))
    data["notes"] = [ESCAPES]
    for each in data["functions"]:
        each["name"] = each["qualified_name"] = each["name"] + ESCAPES
    for finding in data["findings"]:
        finding["title"] = ESCAPES
    for name in ("dump", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(json.dumps(data))

    status, printed = report(capsys, tmp_path / "dump")
    assert status == 0
    index = (tmp_path / "dump" / "index.md").read_text()
    (tmp_path / "other" / "manifest.json").write_text(
        json.dumps(data).replace("relu", f"sin{json.dumps(ESCAPES)[1:-1]}")
    )
    main(["diff", str(tmp_path / "dump"), str(tmp_path / "other")])
    printed += capsys.readouterr().out
    main(["report", str(tmp_path / f"nothing{ESCAPES.replace('/', '')}")])
    printed += capsys.readouterr().err
    for text in (printed, index):
        assert r"\x1b" in text
        assert not set(text) & set("\x1b\x07\u202e\r")


@pytest.mark.parametrize(
    "record",
    [
        '{"dynamo_start": ' + '{"a":' * 900 + "1" + "}" * 900 + "}",
        '{"dynamo_start": ' + "[" * 900 + "]" * 900 + "}",
        '{"dynamo_start": ' + "[" * 100000 + "]" * 100000 + "}",
        '{"dynamo_start": {"stack": [{"line": 1000000000000, "name": "f", "filename": 0, "loc": "x"}]}, "frame_id": 0}',
        '{"dynamo_start": {"stack": [{"line": 1' + "0" * 5000 + ', "name": "f", "filename": 0, "loc": "x"}]}}',
        '{"compilation_metrics": {"compile_id": "0/0", "start_time": 1e308, "entire_frame_compile_time_s": 1e999}}',
        '{"rank": "../../../evil", "dynamo_start": {}}',
        '{"rank": [1], "dynamo_start": {}}',
        '{"rank": 1' + "0" * 4000 + ', "dynamo_start": {}}',
        '{"chromium_event": {}, "has_payload": "x"}\n\t{"ts": 1e308}',
        '{"chromium_event": {}, "has_payload": "x"}\n\t' + "[" * 100000,
        '{"str": 5}',
        '{"str": [[], {}]}',
        "[]",
        '{"dynamo_output_graph": {"sizes": 7}, "has_payload": "x"}\n\t# File: /a.py:' + "9" * 5000 + " in f, code: x",
    ],
    ids=lambda record: record[:40],
)
def test_a_log_of_nonsense_ends(capsys: Any, tmp_path: Path, record: str) -> None:
    (tmp_path / "a.log").write_text(
        HEAD + '{"torch_version": "2"}\n' + log_of(compiled("/a.py")) + HEAD + record + "\n"
    )
    status, printed = report(capsys, tmp_path / "a.log", "-o", tmp_path / "page")
    assert status in (0, 2), printed
    assert {path.name for path in tmp_path.iterdir()} <= {"a.log", "page"}
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in written) < 10_000_000


def test_a_log_that_unpacks_to_too_much_is_read_in_part(capsys: Any, tmp_path: Path) -> None:
    log = tmp_path / "a.log.gz"
    with gzip.open(log, "wb", compresslevel=9) as file:
        file.write(log_of(compiled("/a.py")).encode())
        for _ in range(160):
            file.write((b" " * 1023 + b"\n") * 1024)
    assert log.stat().st_size < 1 << 20
    status, printed = report(capsys, log, "-o", tmp_path / "page")
    assert status == 0
    assert "unpacks to more than 200 times its size, and was read up to there" in printed


def leaves(value: Any, path: Tuple[Any, ...] = ()) -> Iterator[Tuple[Any, ...]]:
    """The way to every value in a JSON text; of the items of a list, the first and the last."""
    if path:
        yield path
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for key, item in items if isinstance(value, dict) else [*items[:1], *items[1:][-1:]]:
        yield from leaves(item, (*path, key))


def put(value: Any, path: Tuple[Any, ...], new: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


def deep(depth: int = 400) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


HOSTILE: List[Callable[[], Any]] = [
    deep,
    lambda: 10**300,
    lambda: -1,
    lambda: ESCAPES,
    lambda: "../../" * 50 + "\0",
    lambda: None,
    lambda: {},
    lambda: [[]],
    lambda: True,
    lambda: 1e308,
    lambda: "\ud800",
]


@pytest.mark.parametrize("seed", range(4))
def test_a_manifest_with_any_value_anywhere_is_read_or_refused(capsys: Any, tmp_path: Path, seed: int) -> None:
    text = to_json(sample_run()[0])
    pairs = [(path, number) for path in leaves(json.loads(text)) for number in range(len(HOSTILE))]
    for path, number in random.Random(seed).sample(pairs, 60):
        data = json.loads(text)
        put(data, path, HOSTILE[number]())
        (tmp_path / "manifest.json").write_text(json.dumps(data))
        status, printed = report(capsys, tmp_path / "manifest.json", "-o", tmp_path / "page")
        assert status in (0, 2), (path, number, printed)
        assert not set(printed) & set("\x1b\x07\u202e"), (path, number)
        if status == 0:
            page = (tmp_path / "page" / "index.html").read_text()
            assert "<script>window.pwned" not in page, (path, number)


@pytest.mark.parametrize("seed", range(2))
def test_a_log_with_any_value_anywhere_is_read_or_refused(capsys: Any, tmp_path: Path, seed: int) -> None:
    lines = gzip.decompress(LOG.read_bytes()).decode().split("\n")
    records = [number for number, line in enumerate(lines) if "] {" in line and not line.startswith("\t")]
    chance = random.Random(seed)
    for _ in range(12):
        changed = list(lines)
        for number in chance.sample(records, 20):
            head, _, data = changed[number].partition("] ")
            record = json.loads(data)
            put(record, chance.choice(list(leaves(record))), chance.choice(HOSTILE)())
            changed[number] = f"{head}] {json.dumps(record)}"
        (tmp_path / "a.log").write_text("\n".join(changed))
        status, printed = report(capsys, tmp_path / "a.log", "-o", tmp_path / "page")
        assert status in (0, 2), printed
        assert {path.name for path in tmp_path.iterdir()} <= {"a.log", "page"}
        if status == 0:
            assert "<script>window.pwned" not in (tmp_path / "page" / "index.html").read_text()


def test_nothing_of_a_stranger_is_run_by_what_reads(tmp_path: Path) -> None:
    """Reading commands import no file of the dump, and neither evaluate nor unpickle anything."""
    trap = "import os\nos.mkdir('ran')\n"
    dump = tmp_path / "dump"
    dump.mkdir()
    run, text_of = sample_run()
    for artifact in run.artifacts:
        (dump / (artifact.path or artifact.id)).write_text(f"{trap}{text_of(artifact)}")
    for name in ("sitecustomize.py", "torch.py", "depyf.py", "token.py", "conftest.py"):
        (dump / name).write_text(trap)
    audit = tmp_path / "audit.py"
    audit.write_text(
        "import sys\n"
        "from depyf.cli import main\n"
        "seen = []\n"
        "def hook(event, arguments):\n"
        "    if event.startswith(('pickle.', 'subprocess.', 'os.system', 'os.exec', 'socket.')):\n"
        "        seen.append((event, arguments))\n"
        "    elif event == 'exec' and 'mkdir' in arguments[0].co_names + arguments[0].co_consts:\n"
        "        seen.append((event, arguments[0].co_filename))\n"
        "    elif event == 'import' and 'dump' in str(arguments[1]):\n"
        "        seen.append((event, arguments))\n"
        "sys.addaudithook(hook)\n"
        "main(sys.argv[1:])\n"
        "print('SEEN', seen)\n"
    )
    source = Path(__file__).resolve().parents[2] / "src"
    environment = {**os.environ, "PYTHONPATH": str(source)}
    for arguments in (["report", "dump"], ["diff", "dump", "dump"], ["report", str(LOG), "-o", "page"]):
        command = [sys.executable, str(audit), *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert "SEEN []" in done.stdout, done.stdout[-500:] + done.stderr[-2000:]
        assert not (tmp_path / "ran").exists()


@pytest.mark.torch
def test_extracting_without_a_check_runs_nothing(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    pytest.importorskip("torch")
    trap = "__import__('os').mkdir('ran')"
    text = f"""# Captured_Graph of __compiled_fn_1, compile id 0/0
# This file is what runs: a breakpoint in it stops.
import torch
{trap}

class GraphModule(torch.nn.Module):
    {trap}
    def forward(self, L_x_: "f32[{trap}, 3]", s0: "Sym({trap})"):
        l_x_ = L_x_
        {trap}
        add: "f32[3]" = l_x_ + 1;  l_x_ = None
        return (add,)
"""
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "__compiled_fn_1.Captured_Graph.0.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    for arguments in (["1"], [], ["0/0"], ["__compiled_fn_1.Captured_Graph.0.py"]):
        assert main(["extract", "dump", *arguments, "--no-check"]) in (0, 2)
    capsys.readouterr()
    assert not (tmp_path / "ran").exists()
