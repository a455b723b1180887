"""``values="types"``: none of the values that the program held stands in a file; what runs has the values."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import types
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
import torch
import warm_python
from torch_versions import IS_OLD, needs_guard_trees

import depyf
from depyf.report.render.hidden_values import HiddenValues

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]


needs_reads = pytest.mark.skipif(IS_OLD, reason="an older PyTorch can't compile reads")


def secret(name: str) -> str:
    """A text that stands in no source file."""
    return "SEC" + "RET_" + name


def number(last: int) -> int:
    """A number that stands in no source file."""
    return int("77" + "31" + f"{last:04d}")


FOUND = re.compile(rb"SEC" + rb"RET_\w+|(?<![\d.])(?:0\.)?77" + rb"31\d{4}(?!\d)")

TOKEN = secret("global")
PIN = number(1)
settings: Dict[Any, Any] = {secret("dictkey"): secret("dictvalue"), "pin": number(3), "in": {"a": [secret("list")]}}
vault = types.ModuleType("vault")
vault.password = secret("module")  # type: ignore[attr-defined]


class Account:
    def __init__(self) -> None:
        self.key = secret("attribute")
        self.pin = number(5)


account = Account()


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.secret = secret("layer")
        self.by_name = {secret("layerkey"): number(9)}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.secret == "o":
            x = x + 1
        for key in self.by_name:
            x = x + self.by_name[key] % 3
        return x * 2


def closing(token: str, pin: int) -> Callable[[torch.Tensor], Tuple[torch.Tensor, str]]:
    def closes(x: torch.Tensor) -> Tuple[torch.Tensor, str]:
        return x + len(token) + (pin % 3), token

    return closes


def with_default(x: torch.Tensor, token: str = secret("default"), *, last: int = number(7)) -> Tuple[Any, ...]:
    if token == "d" or last == 5:  # else PyTorch 2.15 has no guard on them
        x = x + 1
    return x * 2 + (last % 7), token + "!", last


def reads(x: torch.Tensor) -> Tuple[Any, ...]:
    if TOKEN == "a" or settings["pin"] == 3 or vault.password == "b" or account.key == "c":
        x = x + 1
    for value in settings.values():
        if value == "z":
            x = x + 3
    return x + PIN % 5, account.pin, os.environ["PLANTED_BY_A_TEST"]


def takes(x: torch.Tensor, text: str, whole: int, fraction: float) -> Tuple[Any, ...]:
    if text == "d" or whole == 5 or fraction > 1.5:
        x = x + 1
    return x + 1, text, whole


def breaks(x: torch.Tensor) -> Tuple[Any, ...]:
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2, TOKEN


def raises(x: torch.Tensor) -> torch.Tensor:
    raise ValueError(f"bad {TOKEN} " + secret("raised"))


def run_all(compiled: Callable[[Any], Any]) -> List[Any]:
    """Call everything, some twice, so that it is compiled again; return the results."""
    global TOKEN
    TOKEN = secret("global")
    x = torch.ones(3)
    results: List[Any] = [compiled(closing(secret("closure"), number(6)))(x), compiled(with_default)(x)]
    results.append(compiled(with_default)(x, secret("passed")))
    results.append(compiled(reads)(x))
    TOKEN = secret("changed")
    results += [compiled(reads)(x), compiled(breaks)(x)]
    argument = compiled(takes)
    results.append(argument(x, secret("one"), number(12), float(f"0.{number(13)}")))
    results.append(argument(x, secret("two"), number(14), float(f"0.{number(15)}")))
    layer = Layer()
    results.append(compiled(layer)(x))
    layer.secret = secret("otherlayer")
    results.append(compiled(layer)(x))
    with pytest.raises(ValueError, match="bad"):
        compiled(raises)(x)
    return results


def files_with_values(directory: Path) -> Dict[str, List[str]]:
    found: Dict[str, List[str]] = {}
    for path in directory.rglob("*"):
        if path.is_file():
            here = {match.decode() for match in FOUND.findall(path.read_bytes())}
            if here:
                found[path.name] = sorted(here)
    return found


@pytest.fixture
def with_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_BY_A_TEST", secret("environment"))
    monkeypatch.setattr(sys, "argv", ["train.py", f"--token={secret('option')}", secret("argument")])


@needs_reads
@pytest.mark.usefixtures("with_secrets")
def test_no_file_has_a_value_that_the_program_held(tmp_path: Path) -> None:
    def compiled(function: Any) -> Any:
        return torch.compile(function, backend="eager")

    expected = run_all(lambda function: function)
    torch._dynamo.reset()
    with depyf.prepare_debug(tmp_path / "types", values="types", log_bytecode=True):
        results = run_all(compiled)
    assert repr(results) == repr(expected)
    assert files_with_values(tmp_path / "types") == {}
    torch._dynamo.reset()
    with depyf.prepare_debug(tmp_path / "all", values="all"):  # else this test can't fail
        run_all(compiled)
    shown = files_with_values(tmp_path / "all")
    named = {each for values in shown.values() for each in values}
    for each in ("global", "changed", "closure", "default", "dictkey", "dictvalue", "list", "module", "attribute"):
        assert secret(each) in named
    for each in ("layer", "layerkey", "environment", "passed", "one", "two", "raised", "option", "argument"):
        assert secret(each) in named
    assert {"index.html", "index.md", "manifest.json", "full_code_for_reads_0.py"} <= set(shown)


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_reads
@pytest.mark.usefixtures("with_secrets")
def test_a_full_code_file_has_the_values_where_it_is_imported_by_the_process(tmp_path: Path) -> None:
    x = torch.ones(3)
    with depyf.prepare_debug(tmp_path, values="types"):
        torch.compile(reads, backend="eager")(x)
        torch.compile(with_default, backend="eager")(x)
    module = load(tmp_path / "full_code_for_reads_0.py")
    module.reads = lambda *_: "eager"
    assert repr(module.transformed_reads(x)) == repr(reads(x))
    module = load(tmp_path / "full_code_for_with_default_0.py")
    module.with_default = lambda *_, **__: "eager"
    assert repr(module.transformed_with_default(x, secret("default"), last=number(7))) == repr(with_default(x))
    assert module.transformed_with_default(x, "another", last=number(7)) == "eager"


def test_another_process_gets_a_placeholder(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path, values="types"):
        torch.compile(closing(secret("closure"), 3), backend="eager")(torch.ones(3))
    text = (tmp_path / "full_code_for_closes_0.py").read_text()
    assert "def __transformed_code_0_for_closes" in text
    program = f"import runpy; runpy.run_path({str(tmp_path / 'full_code_for_closes_0.py')!r})"
    assert warm_python.run([sys.executable, "-c", program]).returncode == 0


@needs_reads
@pytest.mark.usefixtures("with_secrets")
def test_lines_of_transformed_code_are_those_that_run(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path / "types", values="types"):
        torch.compile(reads, backend="eager")(torch.ones(3))
    torch._dynamo.reset()
    with depyf.prepare_debug(tmp_path / "all", values="all"):
        torch.compile(reads, backend="eager")(torch.ones(3))
    hidden = (tmp_path / "types" / "__transformed_code_0_for_reads.py").read_text().splitlines()
    shown = (tmp_path / "all" / "__transformed_code_0_for_reads.py").read_text().splitlines()
    places = [number for number, line in enumerate(hidden) if "__hidden_str_" in line]
    assert places
    assert [number for number, line in enumerate(shown) if secret("environment") in line] == places[:1]


@needs_guard_trees
def test_equal_values_have_one_name_and_the_reader_sees_which_differ(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path, values="types"):
        compiled = torch.compile(with_default, backend="eager")
        compiled(torch.ones(3), secret("one"))
        compiled(torch.ones(3), secret("two"))
    index = (tmp_path / "index.md").read_text()
    told = re.search(r"token is \\<(str \d+)>, and was compiled for \\<(str \d+)>", index)
    assert told is not None
    assert told.group(1) != told.group(2)
    guards = (tmp_path / "full_code_for_with_default_0.py").read_text()
    assert f"L['token'] == <{told.group(1)}>" in guards
    assert f"L['token'] == <{told.group(2)}>" in guards


@needs_guard_trees
def test_what_the_author_wrote_stays(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path, values="types"):
        torch.compile(with_default, backend="eager")(torch.ones(3))
    text = (tmp_path / "full_code_for_with_default_0.py").read_text()
    for each in ('token + "!"', "size=[3]", "torch.float32"):
        assert each in text


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "all"),
        ({"CI": "true"}, "types"),
        ({"CI": "1"}, "types"),
        ({"CI": ""}, "all"),
        ({"CI": "false"}, "all"),
        ({"CI": "true", "DEPYF_VALUES": "all"}, "all"),
        ({"DEPYF_VALUES": "types"}, "types"),
        ({"DEPYF_VALUES": "tpyes"}, "types"),
    ],
)
def test_the_default_is_the_environments(
    environment: Dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI", "DEPYF_VALUES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert depyf.prepare_debug(tmp_path).values == expected
    assert depyf.prepare_debug(tmp_path, values="all").values == "all"


def test_settings_of_pytorch_are_no_values() -> None:
    """The guard on them has JSON with the name "dtype", which stands in sentences of depyf, too."""
    hiding = HiddenValues()
    state = '___check_global_state() against {"autocast_state":{"dtype":[15,5]}}'
    assert hiding.guard(state) == state
    assert hiding.message("each dtype needs a compilation of its own") == "each dtype needs a compilation of its own"


def test_another_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'all' and 'types'"):
        depyf.prepare_debug(tmp_path, values="none")


PROGRAM = """
import os, torch
secret = os.environ["PLANTED"]
def f(x):
    return x + 1 if secret == "a" else x + 2, secret
torch.compile(f, backend="eager")(torch.ones(3))
"""


@pytest.mark.slow
@pytest.mark.parametrize("follow", [False, True])
def test_depyf_run_takes_the_option(follow: bool, tmp_path: Path) -> None:
    program, dump = tmp_path / "program.py", tmp_path / "dump"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "depyf", "run", "-o", str(dump), "--values", "types", "-q"]
    command += ["--follow"] if follow else []
    environment = {**os.environ, "PLANTED": secret("planted"), "COLUMNS": "200"}
    warm_python.run([*command, str(program)], check=True, env=environment)
    assert list(dump.rglob("full_code_for_f_0.py"))
    assert files_with_values(dump) == {}
