"""Each kind of object that users pass to ``why``, ``extract`` and ``compare``, and the result of each question."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
from torch_versions import needs_stances

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.hooks import cache_entries, frame_evaluation  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]

nn = torch.nn
compiled_graphs: List[Any] = []


def noting(module: Any, inputs: Any) -> Any:
    compiled_graphs.append(module)
    return module


def compiled(target: Any) -> Any:
    return torch.compile(target, backend=noting)


def function(x: Any, n: int = 2) -> Any:
    return x * n


class Plain:
    factor = 2

    def method(self, x: Any) -> Any:
        return x * self.factor

    def __call__(self, x: Any) -> Any:
        return x + self.factor


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.linear(x).relu()


class WithoutGradients(Model):
    @torch.no_grad()
    def forward(self, x: Any) -> Any:
        return self.linear(x).relu()


class OwnCall(Model):
    def __call__(self, x: Any) -> Any:
        return super().__call__(x) + 1


def counted(inner: Callable[..., Any]) -> Any:
    @functools.wraps(inner)
    def wrapper(*args: Any) -> Any:
        calls.append(inner)
        return inner(*args)

    return wrapper


calls: List[Any] = []


def decorated() -> Dict[str, Any]:
    """Definitions with decorators, which compile when they are executed."""

    class Decorated:
        factor = 3

        @torch.compile(backend=noting)
        def method(self, x: Any) -> Any:
            return x * self.factor

        @classmethod
        @torch.compile(backend=noting)
        def of_class(cls, x: Any) -> Any:
            return x * cls.factor

        @staticmethod
        @torch.compile(backend=noting)
        def static(x: Any) -> Any:
            return x * 5

        @torch.no_grad()
        @torch.compile(backend=noting)
        def without_gradients(self, x: Any) -> Any:
            return x * self.factor

        @torch.compile(backend=noting)
        def __call__(self, x: Any) -> Any:
            return x - self.factor

    class Forward(Model):
        @torch.compile(backend=noting)
        def forward(self, x: Any) -> Any:
            return self.linear(x).tanh()

    def whole_module() -> Any:
        class Whole(Model):
            pass

        return compiled(Whole)()

    @torch.no_grad()
    @torch.compile(backend=noting)
    def above(x: Any) -> Any:
        return x.sin()

    @torch.autocast("cpu", dtype=torch.bfloat16)
    @torch.compile(backend=noting)
    def mixed(x: Any) -> Any:
        return x @ x.T

    @counted
    @torch.compile(backend=noting)
    def wrapped(x: Any) -> Any:
        return x.cos()

    @torch.compile(backend=noting)
    @torch.no_grad()
    def below(x: Any) -> Any:
        return x.exp()

    return {
        "class": Decorated,
        "forward": Forward,
        "module": whole_module,
        **{each.__name__: each for each in (above, mixed, wrapped, below)},
    }


def after_module_compile(module: Any) -> Any:
    module.compile(backend=noting)
    return module


def forward_replaced() -> Any:
    module = Model()
    module.forward = compiled(module.forward)
    return module


def broken(x: Any) -> Any:
    x = x + 1
    torch._dynamo.graph_break()
    return x.sin() * 2


def resume_function() -> Any:
    compiled(broken)(torch.ones(2, 4))
    name = next(name for entry in cache_entries.cache_entries(broken.__code__) for name in depyf_resumes(entry.code))
    return broken.__globals__[name]


def depyf_resumes(code: Any) -> List[str]:
    return [name for name in code.co_names if name.startswith("__resume_at_")]


@dataclass
class Kind:
    """``make`` makes the object, ``name`` is that of the function whose code is compiled; ``first`` goes before x."""

    make: Callable[[], Any]
    name: str
    first: Tuple[Any, ...] = ()
    since_stances: bool = False


KINDS: Dict[str, Kind] = {
    "function": Kind(lambda: compiled(function), "function"),
    "compiled twice": Kind(lambda: compiled(compiled(function)), "function"),
    "method decorated in its class": Kind(lambda: decorated()["class"]().method, "method"),
    "class method decorated": Kind(lambda: decorated()["class"]().of_class, "of_class"),
    "static method decorated": Kind(lambda: decorated()["class"].static, "static"),
    "decorated method of the class": Kind(lambda: decorated()["class"].method, "method", (Plain(),)),
    "bound method compiled": Kind(lambda: compiled(Plain().method), "method"),
    "callable object compiled": Kind(lambda: compiled(Plain()), "__call__"),
    "object whose call is decorated": Kind(lambda: decorated()["class"](), "__call__"),
    "module": Kind(lambda: compiled(Model()), "forward"),
    "module with a call of its own": Kind(lambda: compiled(OwnCall()), "__call__"),
    "module after Module.compile": Kind(lambda: after_module_compile(Model()), "forward"),
    "module whose forward is decorated": Kind(lambda: decorated()["forward"](), "forward"),
    "module whose class is decorated": Kind(lambda: decorated()["module"](), "forward", since_stances=True),
    "partial method": Kind(lambda: compiled(functools.partial(Plain().method)), "method", since_stances=True),
    "module whose forward was replaced": Kind(forward_replaced, "forward"),
    "module without gradients": Kind(lambda: compiled(WithoutGradients()), "forward"),
    "module without gradients, Module.compile": Kind(lambda: after_module_compile(WithoutGradients()), "forward"),
    "module of torch.nn": Kind(lambda: compiled(nn.Sequential(nn.Linear(4, 4), nn.ReLU())), "forward"),
    "module of torch.nn after Module.compile": Kind(lambda: after_module_compile(nn.Linear(4, 4)), "forward"),
    "method of a module": Kind(lambda: compiled(Model().forward), "forward"),
    "no_grad above": Kind(lambda: decorated()["above"], "above"),
    "no_grad above, method": Kind(lambda: decorated()["class"]().without_gradients, "without_gradients"),
    "no_grad below": Kind(lambda: decorated()["below"], "below"),
    "no_grad around a module": Kind(lambda: torch.no_grad()(compiled(Model())), "forward"),
    "autocast above": Kind(lambda: decorated()["mixed"], "mixed"),
    "wrapper above": Kind(lambda: decorated()["wrapped"], "wrapped"),
    "partial of compiled": Kind(lambda: functools.partial(compiled(function), n=3), "function"),
    "partial compiled": Kind(lambda: compiled(functools.partial(function, n=3)), "function"),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_compiled_is_found(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    if kind.since_stances and not frame_evaluation.has_stances():
        pytest.skip("not every PyTorch before 2.6 compiles this")
    given, arguments = kind.make(), (*kind.first, torch.ones(2, 4))
    compiled_graphs.clear()
    before = depyf.why(given, *arguments)
    assert kind.name in before.function
    assert compiled_graphs == []
    given(*arguments)
    answer = depyf.why(given, *arguments)
    if not compiled_graphs:  # Dynamo lets it be
        assert before.left_alone
        assert "runs as plain Python" in str(before)
        with pytest.raises(LookupError, match="nothing is compiled here that has a graph: Dynamo compiles no frame of"):
            depyf.extract(given)
        return
    assert answer.hit is not None, str(answer)
    assert before.entries == ()
    assert before.outcome == "would be compiled for the first time"
    assert ["was not analysed" in note for note in answer.notes] == [True] * (name == "wrapper above")
    path = str(tmp_path / "graph.py")
    assert depyf.extract(given, path=path, check=False).graph.endswith("Captured_Graph")
    if frame_evaluation.has_stances():
        check_compared(given, arguments, path)
        assert depyf.why(given, *arguments) == answer  # nothing of theirs is left


def check_compared(given: Any, arguments: Any, path: str) -> None:
    compiled_graphs.clear()
    depyf.extract(given, "Captured_Graph", *arguments, path=path, check=False)
    compared = depyf.compare(given, *arguments)
    assert compared.same, str(compared)
    assert compared.backend == "noting"
    assert compared.stages[0].values
    assert len(compiled_graphs) == 2
    assert compared.function.split(".")[-1] not in ("inner", "compile_wrapper", "wrapper", "decorate_context")


@needs_stances
def test_wrappers_run_around_what_is_compared(tmp_path: Path) -> None:
    calls: List[int] = []

    def twice_as_much(inner: Callable[..., Any]) -> Any:
        @functools.wraps(inner)
        def wrapper(x: Any) -> Any:
            calls.append(1)
            return inner(x * 2)

        return wrapper

    given = twice_as_much(compiled(torch.no_grad()(lambda x: x + 1)))
    x = torch.ones(3, requires_grad=True)
    depyf.extract(given, None, x, path=str(tmp_path / "graph.py"), check=False)
    saved = torch.load(tmp_path / "graph.pt")
    assert [value.tolist() for name, value in saved.items() if name not in ("expected", "rng")] == [[2.0, 2.0, 2.0]]


def test_a_resume_function_has_graphs_and_is_asked_for_by_its_frame(tmp_path: Path) -> None:
    resume = resume_function()
    answer = depyf.extract(resume, path=str(tmp_path / "graph.py"), check=False)
    assert "x.sin()" in Path(answer.path).read_text()
    if resume.__code__.co_argcount > 1:
        with pytest.raises(TypeError, match="only the frame of a resume function"):
            depyf.why(resume, torch.ones(2, 4))


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = Model()
        self.two = torch.compile(Model(), backend=noting)
        self.one.compile(backend=noting)

    def forward(self, x: Any) -> Any:
        return self.two(self.one(x))


def test_parts_that_are_compiled_by_themselves_are_said() -> None:
    model, x = Part(), torch.ones(2, 4)
    model(x)
    assert "Parts of it are compiled: ask about one, two" in str(depyf.why(model, x))
    assert depyf.why(model.two, model.one(x)).hit is not None
    with pytest.raises(LookupError, match="compiled by themselves are one, two"):
        depyf.extract(model)
    if frame_evaluation.has_stances():
        counted, compiled_frames = dict(torch._dynamo.utils.counters["stats"]), []
        stop = frame_evaluation.watch_bytecode(lambda original, transformed: compiled_frames.append(original.co_name))
        answer = depyf.compare(model, x)
        stop()
        assert answer.same
        assert answer.backend == "noting"
        assert any("parts of it are compiled (one, two)" in note for note in answer.notes)
        assert compiled_frames == ["forward"]  # eager mode is not compiled
        assert dict(torch._dynamo.utils.counters["stats"]) == counted


helper = torch.compile(function, backend="eager")


class Several(Model):
    @torch.compile(backend=noting)
    def encode(self, x: Any) -> Any:
        return self.linear(x)

    def forward(self, x: Any) -> Any:
        return helper(self.encode(x))


def test_functions_and_methods_that_are_compiled_by_themselves_are_said_too() -> None:
    model, x = Several(), torch.ones(2, 4)
    model(x)
    assert "Parts of it are compiled: ask about helper, encode" in str(depyf.why(model, x))
    assert depyf.why(model.encode, x).hit is not None
    with pytest.raises(LookupError, match="compiled by themselves are helper, encode"):
        depyf.extract(model)


def without_graph(x: Any, n: int = 1) -> Any:
    return x


def test_what_dynamo_finds_no_graph_in_is_said() -> None:
    given, x = compiled(without_graph), torch.ones(2)
    if frame_evaluation.has_stances():
        assert "nothing of it was compiled" in str(depyf.compare(given, x))
    assert depyf.why(given, x).would_compile
    given(x)
    answer = depyf.why(given, x)
    assert "runs as plain Python: Dynamo has traced it before and compiled nothing" in str(answer)
    assert not answer.would_compile
    with pytest.raises(LookupError, match="Dynamo has traced it before and compiled nothing"):
        depyf.extract(given)


def test_what_is_disabled_runs_as_plain_python() -> None:
    answer = depyf.why(torch.compiler.disable(function), torch.ones(2))
    assert answer.left_alone
    assert "torch.compiler.disable" in answer.outcome
    assert not answer.would_compile


@pytest.mark.parametrize("question", ["why", "extract", "compare"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (5, "this is 5, of type int, which can't be called"),
        (None, "this is None, of type NoneType, which can't be called"),
        (Model, "Model is a class"),
        (print, "a call of a builtin_function_or_method runs no Python function"),
    ],
    ids=["number", "None", "class", "builtin"],
)
def test_what_can_not_be_asked_about_is_refused_in_words(question: str, given: Any, words: str) -> None:
    if question == "compare" and not frame_evaluation.has_stances():
        pytest.skip("this PyTorch has no stances")
    with pytest.raises(TypeError, match=f"depyf.{question} can't determine what this call would run: .*{words}"):
        getattr(depyf, question)(given)


@needs_stances
def test_arguments_that_can_not_be_copied_are_named() -> None:
    with pytest.raises(TypeError, match=r"argument 1 \(a generator\) can't be copied .* a list in place"):
        depyf.compare(lambda x, more: x + sum(more), torch.ones(2), (each for each in (1, 2)))
