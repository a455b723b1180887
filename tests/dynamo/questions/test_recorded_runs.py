"""A recorded run computes what a plain run does, and two recorded runs name the first step and module that differ."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys
import weakref
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional

import pytest
from torch_versions import IS_OLD, needs_stances

from depyf.answers.parted import RecordingsCompared, compare_recordings, lines_of
from depyf.answers.recorded import LOSS, Recording, file_name, read_recording

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("fresh_dynamo"),
    needs_stances,
    pytest.mark.skipif(IS_OLD, reason="as other tests of shadow"),
    pytest.mark.skipif(sys.getprofile() is not None, reason="a profiler runs"),
]
torch = pytest.importorskip("torch")

from depyf.dynamo.questions.shadow import at_step  # noqa: E402
from depyf.dynamo.questions.shadow.at_step import StepComparison  # noqa: E402
from depyf.dynamo.questions.shadow.record_file import RecordedRun  # noqa: E402
from depyf.dynamo.questions.shadow.recorder import Recorder  # noqa: E402

nn = torch.nn
STEPS = 6
FAULT = 3


class Net(nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        return self.last(torch.tanh(self.second(torch.tanh(self.first(x)))))


class Faults:
    """What goes wrong from step ``FAULT`` on; nothing, as long as ``wanted`` is empty."""

    def __init__(self, wanted: str = "") -> None:
        self.wanted = wanted
        self.step = 0

    def now(self, name: str) -> bool:
        return self.wanted == name and self.step >= FAULT

    def backend(self, graph: Any, inputs: Any) -> Any:
        """A backend with a wrong pass."""
        if self.now("pass"):
            tanh = [node for node in graph.graph.nodes if "tanh" in str(node.target)][1]
            tanh.target = torch.sin
            graph.recompile()
        return graph.forward


class WrongSGD(torch.optim.SGD):  # type: ignore[misc, name-defined, unused-ignore]
    faults = Faults()

    def step(self, closure: Any = None) -> Any:
        self.param_groups[0]["lr"] = 0.2 if self.faults.now("optimizer") else 0.1
        return super().step(closure)


def train(faults: Faults, *, seed: int = 0, each: Callable[[Any, int], object] = lambda *_: None) -> List[Any]:
    """Train six steps; return the parameters at the end, and what the generator of random numbers gives next."""
    torch.manual_seed(seed)
    net = Net()
    model = torch.compile(net, backend=faults.backend)
    optimizer = WrongSGD(net.parameters(), lr=0.1)
    optimizer.faults = faults
    for faults.step in range(STEPS):
        if faults.step == FAULT:
            torch._dynamo.reset()
        each(net, faults.step)
        loss = model(torch.randn(5, 4)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return [*(parameter.detach().clone() for parameter in net.parameters()), torch.rand(1)]


@contextlib.contextmanager
def recorded(folder: Path, *, eager: bool = False) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    run = RecordedRun(str(folder), ["train.py"], eager=eager)
    try:
        run.begin()
        run.begin_compiler()
        yield
    finally:
        run.end()


def recording(folder: Path, faults: Optional[Faults] = None, *, eager: bool = False, **options: Any) -> Recording:
    torch._dynamo.reset()
    with recorded(folder, eager=eager):
        train(faults or Faults(), **options)
    return read_recording(str(folder / file_name(None)))


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return recording(tmp_path_factory.mktemp("eager"), eager=True)


def text_of(found: RecordingsCompared) -> str:
    return "\n".join(lines_of(found, "depyf shadow --at N"))


def parted(before: Recording, after: Recording) -> Any:
    found = compare_recordings(before, after)
    assert found.parting is not None, text_of(found)
    return found.parting


def test_a_recorded_run_computes_what_a_plain_run_does(tmp_path: Path) -> None:
    plain = train(Faults())
    profile = sys.getprofile()
    torch._dynamo.reset()
    with recorded(tmp_path):
        again = train(Faults())
    assert all(map(torch.equal, plain, again))
    assert sys.getprofile() is profile


def test_no_code_of_the_program_is_run_to_read_its_values(tmp_path: Path) -> None:
    """Neither to find modules and parameters, nor tensors in arguments; not even an exit gets into the program."""
    ran: List[str] = []

    class Mapping(dict):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            ran.append("__iter__")
            raise SystemExit(3)

        items = keys = __getitem__ = __iter__

    class Own(nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def named_modules(self, *args: Any, **kwargs: Any) -> Any:
            ran.append("named_modules")
            raise SystemExit(3)

        named_parameters = named_buffers = named_modules

        def forward(self, known: Any) -> Any:
            return known

    with recorded(tmp_path):
        Own()(Mapping(x=torch.ones(2)))
    assert not ran
    events = read_recording(str(tmp_path / file_name(None))).events
    assert [(each.kind, each.where, [value.name for value in each.values]) for each in events] == [
        ("start", "Own", ["inner.weight", "inner.bias"]),
        ("input", "Own", ["args[0]['x']"]),
        ("output", "Own", ["['x']"]),
    ]


def test_a_call_that_an_exception_ended_hides_no_deeper_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end by an exception is not reported from Python 3.12 on; it is left out here on each Python."""
    fails = [True]
    ended = Recorder._returned
    monkeypatch.setattr(Recorder, "_returned", lambda *call: None if fails[0] else ended(*call))

    class Fails(nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def forward(self, x: Any) -> Any:
            if fails[0]:
                raise ValueError
            return x

    net = Fails()
    with recorded(tmp_path):
        with contextlib.suppress(ValueError):
            net(torch.ones(2))
        fails[0] = False
        (lambda: (lambda: net(torch.ones(2)))())()
    events = read_recording(str(tmp_path / file_name(None))).events
    assert [(each.kind, each.call) for each in events] == [("input", 1), ("input", 2), ("output", 2)]


def test_values_whose_keys_differ_behind_a_space_are_all_compared(tmp_path: Path) -> None:
    runs = []
    for number in range(2):
        with recorded(tmp_path / str(number)):
            nn.Identity()({"the first": torch.ones(2) + number, "the second": torch.ones(2)})
        runs.append(read_recording(str(tmp_path / str(number) / file_name(None))))
    assert [each.name for each in parted(*runs).values] == ["args[0]['the\\x20first']"]


def test_tensors_without_plain_values_are_left_out(tmp_path: Path) -> None:
    """The bits of a quantised tensor end the process."""
    freed = torch.ones(4)
    freed.untyped_storage().resize_(0)
    nested = torch.nested.as_nested_tensor([torch.ones(2), torch.ones(3)])
    quantised = torch._empty_affine_quantized([2], scale=0.1, zero_point=0, dtype=torch.qint8)
    with recorded(tmp_path):
        nn.Identity()([torch.ones(2), nested, freed, quantised])
    events = read_recording(str(tmp_path / file_name(None))).events
    assert [[value.name for value in each.values] for each in events] == [["args[0][0]"], ["[0]"]]


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="added in PyTorch 2.8")
def test_values_of_less_than_a_byte_are_digested_by_their_bytes(tmp_path: Path) -> None:
    runs = []
    for number in range(2):
        packed = torch.tensor([[1, 2], [3, 4 + number]], dtype=torch.uint8)
        given = [packed.t().view(dtype) for dtype in (torch.float4_e2m1fn_x2, torch.uint4, torch.int4)]
        with recorded(tmp_path / str(number)):
            nn.Identity()([*given, torch.tensor([1.0, float("nan" if number else "inf")])])
        runs.append(read_recording(str(tmp_path / str(number) / file_name(None))))
    values = [run.events[0].values for run in runs]
    assert [each.dtype for each in values[0]] == ["float4_e2m1fn_x2", "uint4", "int4", "float32"]
    assert all(each.is_discrete for each in values[0][:3])
    assert all(ours.bits != theirs.bits for ours, theirs in zip(*values))
    assert [each[3].kinds for each in values] == [(0, 1, 0), (1, 0, 0)]


def test_modules_and_optimizers_are_not_kept_alive(tmp_path: Path) -> None:
    gone = []
    with recorded(tmp_path):
        for _ in range(2):
            net = nn.Linear(2, 1)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            net(torch.ones(2)).sum().backward()
            optimizer.step()
            gone += [weakref.ref(net), weakref.ref(optimizer)]
            del net, optimizer
        gc.collect()
        assert [each() for each in gone] == [None] * 4
    events = read_recording(str(tmp_path / file_name(None))).events
    assert [each.where for each in events if each.kind == "parameter"] == ["SGD", "SGD#2"]


def test_eager_and_compiled_are_the_same_up_to_rounding(eager: Recording, tmp_path: Path) -> None:
    found = compare_recordings(eager, recording(tmp_path))
    assert found.parting is None
    assert found.steps == STEPS
    assert found.compared > STEPS * 12
    assert eager.header["eager"] is True


def test_a_wrong_pass_is_found_in_its_step(eager: Recording, tmp_path: Path) -> None:
    parting = parted(eager, recording(tmp_path, Faults("pass")))
    assert (parting.step, parting.kind, parting.where, parting.input_agrees) == (FAULT, "output", "Net", True)


def test_a_wrong_step_of_an_optimizer_is_found(eager: Recording, tmp_path: Path) -> None:
    found = compare_recordings(eager, recording(tmp_path, Faults("optimizer")))
    assert found.parting is not None
    assert (found.parting.step, found.parting.kind, found.parting.where) == (FAULT, "parameter", "WrongSGD")
    assert "its gradients agree, so the step of WrongSGD differs" in text_of(found)


def test_a_module_of_eager_mode_is_named(eager: Recording, tmp_path: Path) -> None:
    def other_bias(net: Any, step: int) -> None:
        if step == FAULT:
            net.second.forward = lambda x: nn.functional.linear(x, net.second.weight * 1.5, net.second.bias)

    def other_code(net: Any, step: int) -> None:
        if step == FAULT:
            net.forward = lambda x: net.last(torch.tanh(net.second(torch.sin(net.first(x)))))

    parting = parted(eager, recording(tmp_path / "a", eager=True, each=other_bias))
    assert (parting.step, parting.kind, parting.where) == (FAULT, "output", "Net.second")
    parting = parted(eager, recording(tmp_path / "b", eager=True, each=other_code))
    assert (parting.step, parting.kind, parting.where) == (FAULT, "input", "Net.second")


def test_random_numbers_and_seeds_are_named(eager: Recording, tmp_path: Path) -> None:
    parting = parted(eager, recording(tmp_path / "a", eager=True, seed=1))
    assert (parting.step, parting.kind, parting.where) == (0, "start", "Net")

    def draw(_: object, step: int) -> None:
        if step == FAULT:
            torch.rand(1)

    parting = parted(eager, recording(tmp_path / "b", eager=True, each=draw))
    assert (parting.step, parting.kind, parting.random) == (FAULT, "input", ("torch",))


def test_gradients_name_the_module_nearest_to_the_loss(eager: Recording, tmp_path: Path) -> None:
    def hook(net: Any, step: int) -> None:
        if step == FAULT:
            net.first.weight.register_hook(lambda grad: grad * 2)

    parting = parted(eager, recording(tmp_path, eager=True, each=hook))
    assert (parting.step, parting.kind, parting.last) == (FAULT, "gradient", "Net.first")
    assert len(parting.values) == 1


def compared_at_fault(faults: Faults) -> List[Any]:
    step = StepComparison(FAULT, by_calls=False)
    torch._dynamo.reset()
    step.begin()
    step.begin_compiler()
    try:
        return train(faults)
    finally:
        step.end()


@pytest.mark.slow  # processes run the reproducers
def test_a_wrong_operation_of_a_step_is_searched(capsys: pytest.CaptureFixture[str]) -> None:
    plain = train(Faults("pass"))
    assert all(map(torch.equal, plain, compared_at_fault(Faults("pass"))))
    err = capsys.readouterr().err
    assert "backend computes something else than eager mode, beginning with backend" in err
    assert "calls of compiled functions in step 3: 0 right, 1 wrong, 0 not compared" in err


def test_the_calls_of_one_step_are_compared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: List[Any] = []

    def compare(call: Any) -> Any:
        calls.append(call.args[0].clone())
        nn.Identity()(torch.ones(1))  # is not counted
        raise TypeError("it can't be copied")

    monkeypatch.setattr(at_step, "compare_entered", compare)
    seen: List[Any] = []
    plain = train(Faults(), each=lambda *_: seen.append(torch.get_rng_state()))
    assert all(map(torch.equal, plain, compared_at_fault(Faults())))
    torch.set_rng_state(seen[FAULT])
    assert len(calls) == 1
    assert torch.equal(calls[0], torch.randn(5, 4))
    err = capsys.readouterr().err
    assert "is not compared: TypeError: it can't be copied" in err
    assert "calls of compiled functions in step 3: 0 right, 0 wrong, 1 not compared" in err


def test_a_step_that_there_is_not_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    step = StepComparison(99, by_calls=True)
    step.begin()
    step.begin_compiler()
    nn.Linear(2, 2)(torch.ones(2))
    step.end()
    assert "no compiled function was called in call 99 (counted from 0): the program made 1 calls" in (
        capsys.readouterr().err
    )


def test_exceptions_of_modules_and_steps_stay_what_they_are(tmp_path: Path) -> None:
    class Raises(nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def forward(self, x: Any) -> Any:
            raise KeyError("x")

    with recorded(tmp_path):
        for _ in range(2):
            with pytest.raises(KeyError):
                nn.Sequential(nn.Identity(), Raises())(torch.ones(1))
        nn.Linear(1, 1)(torch.ones(1)).sum().backward()
    events = read_recording(str(tmp_path / file_name(None))).events
    assert [each.where for each in events if each.kind == "output"] == [
        "Sequential.0", "Sequential#2.0", "Linear"
    ]  # fmt: skip
    assert events[-1].kind == LOSS


def test_a_full_disk_ends_the_recording_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = RecordedRun(str(tmp_path), [], eager=False)
    run.begin()

    class Full:
        def write(self, _: str) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def close(self) -> None:
            self.write("")

    run._file = Full()  # type: ignore[assignment]
    try:
        assert nn.Identity()(torch.ones(1)) == 1
        nn.Identity()(torch.ones(1))
    finally:
        run.end()
    err = capsys.readouterr().err
    assert err.count("has ended: No space left on device") == 1
    assert "is not complete: No space left on device" in err


def test_a_folder_that_is_none_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(RuntimeError):
        run = RecordedRun(str(tmp_path / "none"), [], eager=False)
        run.begin()
        run.begin_compiler()
        run.end()
    assert "has ended: No such file or directory" in capsys.readouterr().err


def test_each_rank_has_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with recorded(tmp_path):
        nn.Identity()(torch.ones(1))
    assert os.listdir(tmp_path) == ["recording.rank_1.jsonl"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    with recorded(tmp_path):
        child = os.fork()
        if not child:
            try:
                nn.Identity()(torch.ones(1))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    assert read_recording(str(tmp_path / file_name(None))).events == ()


def test_modes_and_settings_of_the_program_stay_and_see_nothing(tmp_path: Path) -> None:
    seen: List[str] = []

    class Mode(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined, unused-ignore]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    def call() -> List[str]:
        seen.clear()
        with Mode(), torch.autocast("cpu", torch.bfloat16), torch.inference_mode():
            nn.Linear(3, 3)(torch.ones(2, 3))
        return list(seen)

    plain = call()
    with recorded(tmp_path):
        assert call() == plain
    events = read_recording(str(tmp_path / file_name(None))).events
    assert [each.kind for each in events] == ["start", "input", "output"]
    assert (events[-1].precision, events[-1].values[0].dtype) == ("bfloat16", "bfloat16")
