"""``full_code_*.py`` parses, imports without user code, is the same in every run, and does what Dynamo does."""

from __future__ import annotations

import ast
import filecmp
import gc
import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Optional

import pytest
import warm_python

torch = pytest.importorskip("torch")

from torch_versions import IS_OLD  # noqa: E402

import depyf  # noqa: E402
from depyf.decompiler.source.printing.statements import unparse  # noqa: E402
from depyf.dynamo.guards.live_values import NotLiveError  # noqa: E402

pytestmark = pytest.mark.torch

PROGRAM = Path(__file__).parent / "full_code_programs.py"


def run_program(directory: Path) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "random"}
    subprocess.run([sys.executable, str(PROGRAM), str(directory)], check=True, capture_output=True, env=environment)


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dump")
    run_program(directory)
    return directory


def full_code_files(directory: Path) -> List[Path]:
    return sorted(directory.glob("full_code_for_*.py"))


def functions_of(path: Path) -> Dict[str, ast.FunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def load(path: Path, name: str = "loaded_full_code") -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_user_function_has_its_file(dump: Path) -> None:
    names = {path.name for path in full_code_files(dump)}
    expected = [
        "branch",
        "decorated",
        "variadic",
        "specialised",
        "closure",
        "mutating",
        "forward",
        "method",
    ]
    assert {f"full_code_for_{name}_0.py" for name in [*expected, "_lambda_"]} <= names
    assert "full_code_for_forward_1.py" in names
    # PyTorch before 2.5 puts a function around one that has no file, and compiles that.
    assert names & {"full_code_for_no_source_0.py", "full_code_for_inner_0.py"}
    assert any("odd" in name for name in names)
    # A resume function is part of the story of the function that it continues. (PyTorch before 2.5 defines those with
    # closure variables inside of transformed code, not as globals; these have stories of their own.)
    with_cells = ("resume_in_closure", "resume_in_method")
    assert not [name for name in names if "resume" in name and not any(each in name for each in with_cells)]


def test_every_dumped_python_file_parses_and_the_stories_compile(dump: Path) -> None:
    for path in dump.glob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"))
    for path in full_code_files(dump):
        compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)


def test_every_file_can_be_imported_in_a_fresh_process_and_runs_no_user_code(dump: Path) -> None:
    script = (
        "import importlib.util, sys\n"
        "for path in sys.argv[1:]:\n"
        "    spec = importlib.util.spec_from_file_location('full_code', path)\n"
        "    module = importlib.util.module_from_spec(spec)\n"
        "    spec.loader.exec_module(module)\n"
        "    assert any(name.startswith('transformed_') for name in vars(module)), path\n"
        "assert 'full_code_programs' not in sys.modules\n"
    )
    environment = {**os.environ, "DEPYF_TEST_USER_CODE_RAN": "1"}
    paths = [str(path) for path in full_code_files(dump)]
    done = warm_python.run([sys.executable, "-c", script, *paths], env=environment)
    assert done.returncode == 0, done.stderr


def test_two_runs_give_the_same_files(dump: Path, tmp_path: Path) -> None:
    run_program(tmp_path)
    of_one_run = ["manifest.json", "index.md", "index.html"]  # they tell times
    compared = filecmp.dircmp(dump, tmp_path, ignore=[*of_one_run, "__pycache__"])
    assert compared.left_only == []
    assert compared.right_only == []
    _, differing, errors = filecmp.cmpfiles(dump, tmp_path, compared.common_files, shallow=False)
    differing = [name for name in differing if without_folder(dump / name) != without_folder(tmp_path / name)]
    assert (differing, errors) == ([], [])


def without_folder(path: Path) -> str:
    """The text of a dumped file. In PyTorch 2.2 resume functions with closure variables come from transformed code, so
    where they are named, so is the directory of the dump."""
    return re.sub(r"[^\s(]*/(?=__transformed_code_\d)", "", path.read_text(encoding="utf-8"))


def test_no_id_address_or_random_suffix_is_written(dump: Path) -> None:
    for path in full_code_files(dump):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"0x[0-9a-f]{6,}|[0-9a-f]{8}_[0-9a-f]{4}_", text) == [], path
        assert set(re.findall(r"\b\d{12,}\b", text)) <= {str(2**63 - 1), str(2**63)}, path


def test_the_story_has_all_its_parts(dump: Path) -> None:
    functions = functions_of(dump / "full_code_for_branch_0.py")
    text = (dump / "full_code_for_branch_0.py").read_text(encoding="utf-8")
    for number in range(2):
        assert f"__guard_{number}_for_branch" in functions
        assert f"__transformed_code_{number}_for_branch" in functions
    assert {"branch", "transformed_branch"} <= set(functions)
    resumes = [name for name in functions if name.startswith("__resume_at_")]
    assert len(resumes) >= 2
    resumed = re.compile(r"__guard_0_for_(torch_dynamo_)?resume_in_branch")  # shorter in PyTorch 2.2
    assert any(map(resumed.match, functions))
    stub = next(name for name in functions if name.startswith("__compiled_fn_"))
    assert f"{stub}.Captured_Graph.0.py" in text
    assert "x = a / (torch.abs(a) + 1)" in text


def test_every_name_that_transformed_code_calls_is_defined(dump: Path) -> None:
    for path in full_code_files(dump):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        calls = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        defined = {
            target.id
            for node in ast.walk(tree)
            for target in getattr(node, "targets", ())
            if isinstance(target, ast.Name)
        }
        internal = {name for name in calls if name.startswith(("__compiled_fn", "__resume_at", "__guard"))}
        assert internal <= set(functions_of(path)) | defined, path


def test_decorators_and_computed_defaults_are_not_run(dump: Path) -> None:
    path = dump / "full_code_for_decorated_0.py"
    function = functions_of(path)["decorated"]
    assert function.decorator_list == []
    assert "# @loud(" in path.read_text(encoding="utf-8")
    assert [unparse(default) for default in function.args.kw_defaults if default][1] == "3"
    assert "___placeholder" in unparse(function.args.defaults[0])
    assert ast.get_docstring(function, clean=False) == "A docstring\n  with a line that is indented less.\n    "
    assert "\nnot indented\n" in path.read_text(encoding="utf-8")


def test_elsewhere_a_file_says_what_is_missing(dump: Path) -> None:
    module = load(dump / "full_code_for_decorated_0.py")
    with pytest.raises(NotLiveError, match="exists only in the process that compiled"):
        module.decorated(torch.ones(3))
    assert repr(module.helper) == "<function __main__.helper>" if hasattr(module, "helper") else True


# What follows runs in the process that compiled.


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


LOG: List[str] = []
FACTOR = 3


def scaled(x: Any) -> Any:
    return x * FACTOR


def with_a_break(x: Any, y: Any, n: int = 2) -> Any:
    z = scaled(x) + n
    if y.sum() < 0:
        y = y - 1
    return z * y


class Module(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return self.linear(x).relu()


def dumped(directory: Path, function: Any, *calls: Any) -> Any:
    """The compiled function and the module of the first file that was written for it."""
    with depyf.prepare_debug(directory):
        compiled = torch.compile(function, backend="eager")
        for arguments in calls:
            compiled(*arguments)
    (path,) = full_code_files(directory)
    return load(path)


def test_in_the_process_that_compiled_the_story_can_be_run(tmp_path: Path) -> None:
    x, y = torch.linspace(-1, 1, 4), torch.ones(4)
    module = dumped(tmp_path, with_a_break, (x, y), (x, -y), (x, y, 5))
    for arguments in ((x, y), (x, -y), (x, y, 5), (x, -y, 5)):
        assert torch.equal(module.transformed_with_a_break(*arguments), with_a_break(*arguments))


def test_a_call_that_no_guard_lets_through_runs_the_function_itself(tmp_path: Path) -> None:
    x = torch.ones(4)
    module = dumped(tmp_path, scaled, (x,))
    ran: List[str] = []
    module.scaled = lambda *args: ran.append("original") or scaled(*args)
    assert torch.equal(module.transformed_scaled(x), scaled(x))
    assert ran == []
    assert torch.equal(module.transformed_scaled(x.double()), scaled(x.double()))
    assert ran == ["original"]


@pytest.mark.skipif(IS_OLD, reason="guards on the state differ between the entries in PyTorch before 2.13")
def test_guards_on_the_environment_that_entries_share_are_one_function(tmp_path: Path) -> None:
    def function(x: Any, n: int) -> Any:
        return x + n

    x = torch.ones(4)
    module = dumped(tmp_path, function, (x, True), (x, False))
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    assert text.count("___check_global_state(") == 1
    guard = module.__guard_0_for_function
    assert guard({"x": x, "n": True}, globals())
    with torch.no_grad():
        assert not module.__guard_of_the_environment_0({}, {})
        assert not guard({"x": x, "n": True}, globals())


def test_the_guards_of_an_entry_are_what_it_does_not_share_with_the_others(tmp_path: Path) -> None:
    def function(x: Any, n: Any, s: Any) -> Any:
        return x * s.a + s.b if s.c == "three" and n is None else x * s.a - s.b

    x, settings = torch.ones(4), SimpleNamespace(a=1, b=2.0, c="three")
    module = dumped(tmp_path, function, (x, "one", settings), (x, None, settings))
    guards = module.__guard_0_for_function, module.__guard_1_for_function
    shared, text = module.__guard_in_common_for_function, Path(str(module.__file__)).read_text(encoding="utf-8")
    assert text.count("'three'") == 1
    scope = {"x": x, "n": None, "s": settings}
    assert shared(scope, globals())
    assert [guard(scope, globals()) for guard in guards] == [False, True]
    settings.c = "four"
    assert not shared(scope, globals())
    assert not guards[1](scope, globals())


def test_the_first_entry_whose_guards_hold_is_run(tmp_path: Path) -> None:
    def function(x: Any, n: int) -> Any:
        return x + n

    x = torch.ones(4)
    module = dumped(tmp_path, function, (x, True), (x, False))
    ran: List[str] = []
    for number in range(2):
        name = f"__transformed_code_{number}_for_function"
        setattr(module, name, lambda *args, name=name: ran.append(name))
    module.transformed_function(x, False)
    module.transformed_function(x, True)
    assert ran == ["__transformed_code_1_for_function", "__transformed_code_0_for_function"]


def test_the_guards_of_a_file_see_the_users_module(tmp_path: Path) -> None:
    net = Module()
    module = dumped(tmp_path, net, (torch.ones(2, 3),))
    guard = module.__dict__["__guard_0_for_forward"]
    assert guard({"self": net, "x": torch.ones(2, 3)}, Module.forward.__globals__)
    assert not guard({"self": net, "x": torch.ones(3)}, Module.forward.__globals__)
    if not getattr(torch._dynamo.config, "inline_inbuilt_nn_modules", False):
        return  # PyTorch before 2.5 guards on which module it is, and not on what is in it
    net.linear = torch.nn.Linear(3, 3, bias=False)
    assert not guard({"self": net, "x": torch.ones(2, 3)}, Module.forward.__globals__)


def test_a_closure_gets_its_variables_from_the_factory(tmp_path: Path) -> None:
    weight, bias = torch.full((4,), 2.0), 3

    def closure(x: Any) -> Any:
        return x * weight + bias

    x = torch.ones(4)
    module = dumped(tmp_path, closure, (x,))
    transformed = module.closure_of_closure(bias=bias, weight=weight)
    assert torch.equal(transformed(x), closure(x))
    with pytest.raises(NotLiveError, match="closure variable"):
        module.transformed_closure(x)


def test_a_parameter_may_have_the_name_of_the_function(tmp_path: Path) -> None:
    def same(same: Any) -> Any:
        return same + 1

    x = torch.ones(4)
    module = dumped(tmp_path, same, (x,))
    assert torch.equal(module.transformed_same(x.double()), x.double() + 1)


def test_constants_without_a_literal_are_told(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
            print("break")
            return y @ x

    x = torch.eye(3)
    module = dumped(tmp_path, function, (x,))
    (path,) = full_code_files(tmp_path)
    names = re.findall(r"\b__const_dtype_\d+\b", path.read_text())
    assert names
    assert getattr(module, names[0]) is torch.bfloat16
    assert f"{names[0]} = torch.bfloat16" in path.read_text()
    assert torch.equal(module.transformed_function(x), function(x))


def test_a_lambda_has_a_story(tmp_path: Path) -> None:
    x = torch.ones(4)
    module = dumped(tmp_path, lambda x, n=2: x + n, (x,))
    assert torch.equal(module.transformed__lambda_(x), x + 2)
    assert torch.equal(module.transformed__lambda_(x.double(), 3), x.double() + 3)


def test_a_globals_change_after_the_import_is_seen_by_the_guards(tmp_path: Path, monkeypatch: Any) -> None:
    module = dumped(tmp_path, scaled, (torch.ones(4),))
    guard = module.__dict__["__guard_0_for_scaled"]
    assert guard({"x": torch.ones(4)}, globals())
    monkeypatch.setitem(globals(), "FACTOR", 4)
    assert not guard({"x": torch.ones(4)}, globals())


def refuse_to_decompile(monkeypatch: Any) -> None:
    from depyf.decompiler.errors import DecompilationError
    from depyf.dynamo.capture import rendering

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise DecompilationError("refused by the test")

    monkeypatch.setattr(rendering, "decompile_code", refuse)


def test_code_without_source_is_shown_and_runs_as_it_is(tmp_path: Path, monkeypatch: Any) -> None:
    refuse_to_decompile(monkeypatch)
    x, y = torch.linspace(-1, 1, 4), torch.ones(4)
    module = dumped(tmp_path, with_a_break, (x, y))
    (path,) = full_code_files(tmp_path)
    assert "refused by the test" in path.read_text()
    assert "LOAD_FAST" in path.read_text()
    assert torch.equal(module.transformed_with_a_break(x, y), with_a_break(x, y))


def test_a_second_session_tells_of_entries_of_before(tmp_path: Path) -> None:
    x = torch.ones(4)
    torch.compile(scaled, backend="eager")(x)
    module = dumped(tmp_path, scaled, (x.double(),))
    assert {"__transformed_code_0_for_scaled", "__transformed_code_1_for_scaled"} <= set(vars(module))
    assert torch.equal(module.transformed_scaled(x), scaled(x))


def test_one_file_that_fails_does_not_keep_the_others_from_theirs(tmp_path: Path, monkeypatch: Any) -> None:
    from depyf.dynamo.dump.full_code import writing as full_code

    own = full_code.story_text

    def fail(story: Any, *more: Any) -> Any:
        if story.code.co_name == "scaled":
            raise RuntimeError("a bug")
        return own(story, *more)

    monkeypatch.setattr(full_code, "story_text", fail)
    with depyf.prepare_debug(tmp_path):
        torch.compile(scaled, backend="eager")(torch.ones(3))
        torch.compile(with_a_break, backend="eager")(torch.ones(3), torch.ones(3))
    assert [path.name for path in full_code_files(tmp_path)] == ["full_code_for_with_a_break_0.py"]


def test_a_file_is_compiled_once_and_what_does_not_compile_is_a_comment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from depyf.dynamo.dump.full_code import functions, writing
    from depyf.dynamo.dump.full_code import original as originals

    compiled: List[str] = []
    why = writing.why_it_does_not_compile

    def counted(source: str) -> Optional[str]:
        compiled.append(source)
        return why(source)

    for module in (functions, writing, originals):
        monkeypatch.setattr(module, "why_it_does_not_compile", counted)
    with depyf.prepare_debug(tmp_path / "one"):
        torch.compile(with_a_break, backend="eager")(torch.ones(3), torch.ones(3))
    (path,) = full_code_files(tmp_path / "one")
    text = path.read_text(encoding="utf-8")
    (checked,) = compiled
    assert text.startswith(checked)
    assert text[len(checked) :].startswith("\n\n@___guard\n")  # conditions of guards were parsed one by one
    compile(text, str(path), "exec")

    own = writing.original_of
    monkeypatch.setattr(writing, "original_of", lambda *of: replace(own(*of), source="def scaled(:\n    pass"))
    with depyf.prepare_debug(tmp_path / "other"):
        torch.compile(scaled, backend="eager")(torch.ones(3))
    (path,) = full_code_files(tmp_path / "other")
    assert "# def scaled(:" in path.read_text(encoding="utf-8")
    assert "does not compile here" in unparse(functions_of(path)["scaled"])
    assert "__guard_0_for_scaled" in functions_of(path)


def train_and_forget() -> None:
    """The optimizer, which the compiled ``step`` guards, is gone when this returns; its cache entry stays."""
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile(backend="eager")
    def step() -> None:
        optimizer.step()

    for _ in range(2):
        model(torch.ones(2, 4)).sum().backward()
        step()


def test_an_entry_whose_code_is_gone_does_not_cost_the_files_of_the_others(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path):
        torch.compile(scaled, backend="eager")(torch.ones(3))
        train_and_forget()
        gc.collect()
    names = [path.name for path in full_code_files(tmp_path)]
    transformed = {path.name[len("__transformed_code_0_for_") :] for path in tmp_path.glob("__transformed_code_0_*")}
    roots = {name for name in transformed if not name.startswith("torch_dynamo_resume")}
    assert {"scaled.py", "step.py"} <= roots
    assert {f"{name[len('full_code_for_') : -len('_0.py')]}.py" for name in names} >= roots
    for path in full_code_files(tmp_path):
        load(path)
    index = (tmp_path / "index.md").read_text()
    assert "incomplete" not in index
    story = (tmp_path / "full_code_for_step_0.py").read_text()
    assert story.count("# Transformed code, compile id") == 1


def only_variable(*values: Any) -> Any:
    return values[0] + values[1]


def test_a_function_of_variable_arguments_without_source_has_a_story(tmp_path: Path, monkeypatch: Any) -> None:
    refuse_to_decompile(monkeypatch)
    module = dumped(tmp_path, only_variable, (torch.ones(3), torch.ones(3)))
    assert torch.equal(module.transformed_only_variable(torch.ones(3), torch.ones(3)), torch.full((3,), 2.0))


def goes_on_twice(x: Any, n: int) -> Any:
    y = x * n
    if y.sum() > 1e9:  # of the two resume functions only one is ever compiled
        y = y - 1
    z = y + 1
    torch._dynamo.graph_break()
    return z * 2


def test_what_it_counts_is_what_the_manifest_counts(tmp_path: Path) -> None:
    """Each entry of the function calls its resume functions by names of its own: they are the same functions."""
    compiled = torch.compile(goes_on_twice, backend="eager", dynamic=False)
    with depyf.prepare_debug(tmp_path):
        for number in range(3):
            compiled(torch.ones(2), number)
    totals = json.loads((tmp_path / "manifest.json").read_text())["totals"]
    said = (tmp_path / "full_code_for_goes_on_twice_0.py").read_text()
    assert (totals["compilations"], totals["resume_functions"]) == (5, 2)
    assert "Here: 5 transformed code objects, 2 resume functions." in said
