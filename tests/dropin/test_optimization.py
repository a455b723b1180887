"""``TorchCompileWrapperWithCustomDispatcher`` collects an instance's code and runs the selected one."""

from __future__ import annotations

import gc
import weakref
from typing import Any, List

import pytest

torch = pytest.importorskip("torch")

from depyf.optimization import TorchCompileWrapperWithCustomDispatcher  # noqa: E402

pytestmark = pytest.mark.torch


class Model(TorchCompileWrapperWithCustomDispatcher):
    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.graphs: List[str] = []
        super().__init__(torch.compile(self.forward, backend=self.backend, dynamic=False))

    def backend(self, graph: Any, inputs: Any) -> Any:
        def run(*args: Any) -> Any:
            self.graphs.append("x".join(map(str, inputs[0].shape)))
            return graph(*args)

        return run

    def forward(self, x: Any, shift: int = 0) -> Any:
        return x * self.scale + shift

    def __call__(self, x: Any) -> Any:
        return self.compiled_callable(x)


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled_model() -> Model:
    model = Model(2.0)
    model(torch.ones(3))
    model(torch.ones(4))
    model.graphs.clear()
    return model


def test_the_code_of_this_instance_is_collected() -> None:
    model = compiled_model()
    assert len(model.compiled_codes) == 2
    assert model.original_code_object is Model.forward.__code__
    other = Model(3.0)
    assert other.compiled_codes == []
    other(torch.ones(5))
    assert len(other.compiled_codes) == 1
    assert len(model.compiled_codes) == 2


def test_a_code_is_run_whatever_the_guards_say() -> None:
    model = compiled_model()
    with model.dispatch_to_code(0):
        result = model.forward(torch.ones(4))
    assert model.graphs == ["3"]
    assert torch.equal(result, torch.full((4,), 2.0))
    with model.dispatch_to_code(1):
        model.forward(torch.ones(3))
    assert model.graphs == ["3", "4"]


def test_what_was_before_is_restored_also_after_an_exception() -> None:
    model = compiled_model()
    with pytest.raises(ZeroDivisionError), model.dispatch_to_code(0):
        raise ZeroDivisionError
    assert "forward" not in vars(model)
    assert torch.equal(model.forward(torch.ones(2)), torch.full((2,), 2.0))
    assert model.graphs == []


def test_dispatching_can_be_nested_and_does_not_touch_other_instances() -> None:
    model, other = compiled_model(), Model(5.0)
    with model.dispatch_to_code(0):
        with model.dispatch_to_code(1):
            model.forward(torch.ones(3))
        model.forward(torch.ones(3))
        assert torch.equal(other.forward(torch.ones(3)), torch.full((3,), 5.0))
    assert model.graphs == ["4", "3"]


def test_default_arguments_are_kept() -> None:
    model = compiled_model()
    with model.dispatch_to_code(0):
        assert torch.equal(model.forward(torch.ones(3)), torch.full((3,), 2.0))


def test_an_unknown_index_is_an_error_and_changes_nothing() -> None:
    model = compiled_model()
    with pytest.raises(IndexError), model.dispatch_to_code(7):
        pass
    assert "forward" not in vars(model)


def test_without_the_dispatcher_nothing_is_collected() -> None:
    class Plain(Model):
        def __init__(self) -> None:
            self.scale, self.graphs = 2.0, []
            compiled = torch.compile(self.forward, backend="eager")
            TorchCompileWrapperWithCustomDispatcher.__init__(self, compiled, use_custom_dispatcher=False)

    plain = Plain()
    assert torch.equal(plain(torch.ones(3)), torch.full((3,), 2.0))
    assert plain.compiled_codes == []


def test_a_module_can_be_the_wrapper() -> None:
    class Module(torch.nn.Module, TorchCompileWrapperWithCustomDispatcher):
        def __init__(self) -> None:
            torch.nn.Module.__init__(self)
            self.linear = torch.nn.Linear(3, 3)
            TorchCompileWrapperWithCustomDispatcher.__init__(self, torch.compile(self.forward, backend="eager"))

        def forward(self, x: Any) -> Any:
            return self.linear(x)

        def __call__(self, x: Any) -> Any:
            if not self.compiled_codes:
                return self.compiled_callable(x)
            with self.dispatch_to_code(0):
                return self.forward(x)

    module, x = Module(), torch.ones(2, 3)
    first = module(x)
    assert len(module.compiled_codes) == 1
    assert torch.equal(module(x), first)


def test_the_instance_is_not_kept_alive() -> None:
    hooks = torch._dynamo.convert_frame._bytecode_hooks
    gc.collect()
    before = len(hooks)
    wrapper = TorchCompileWrapperWithCustomDispatcher(lambda: None)
    assert len(hooks) == before + 1
    reference = weakref.ref(wrapper)
    del wrapper
    gc.collect()
    assert reference() is None
    assert len(hooks) == before
