"""Graph breaks in modules, their hooks, methods, and optimizers."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

import torch
from breaking_case import break_graph, example, module_programs, unary
from case import Case
from torch import Tensor, nn

PROGRAMS, program = module_programs()


class Breaks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        y = self.linear(x)
        break_graph()
        return y.relu() * scale


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Breaks()
        self.norm = nn.LayerNorm(4)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(self.norm(x), scale=2.0)


@program
def a_module() -> Case:
    return unary(Breaks())


@program
def a_module_in_a_module() -> Case:
    return unary(Residual())


@program
def a_sequence_of_modules() -> Case:
    return unary(nn.Sequential(Residual(), nn.ReLU(), Breaks(), Residual()))


@program
def a_list_of_modules() -> Case:
    layers = nn.ModuleList([Residual(), Breaks()])

    def f(x: Tensor) -> Tensor:
        for layer in layers:
            x = layer(x) + x
        return x

    return unary(f)


@program
def a_module_that_counts() -> Case:
    class Counts(nn.Module):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            break_graph()
            self.last = x.shape
            return x * self.calls

    module = Counts()

    def f(x: Tensor) -> Tensor:
        return module(x) + module(x)

    return unary(f, state=lambda: module.calls)


@program
def a_buffer_is_updated() -> Case:
    class Running(nn.Module):
        mean: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x: Tensor) -> Tensor:
            self.mean = self.mean * 0.9 + x.detach().mean(0) * 0.1
            break_graph()
            return x - self.mean

    return unary(Running())


@program
def a_call_of_super() -> Case:
    class Derived(Breaks):
        def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
            y = super().forward(x, scale=scale + 1)
            break_graph()
            return super().forward(y) + x

    return unary(Derived())


@program
def a_forward_hook() -> Case:
    module = nn.Linear(4, 4)

    def hook(owner: nn.Module, inputs: Tuple[Tensor, ...], output: Tensor) -> Tensor:
        break_graph()
        return output + inputs[0]

    module.register_forward_hook(hook)

    def f(x: Tensor) -> Tensor:
        return module(x) * 2

    return unary(f)


@program
def a_forward_pre_hook_with_keywords() -> Case:
    module = Breaks()

    def hook(owner: nn.Module, inputs: Tuple[Tensor, ...], named: Dict[str, Any]) -> Any:
        break_graph()
        return (inputs[0] + 1,), {**named, "scale": 3.0}

    module.register_forward_pre_hook(hook, with_kwargs=True)

    def f(x: Tensor) -> Tensor:
        return module(x, scale=2.0) * 2

    return unary(f)


@program
def hooks_of_the_compiled_module() -> Case:
    module = Breaks()
    module.register_forward_pre_hook(lambda owner, inputs: (inputs[0] * 2,))
    module.register_forward_hook(lambda owner, inputs, output: output + 1)
    return unary(module)


@program
def a_tensor_hook() -> Case:
    def f(x: Tensor) -> Tensor:
        y = x * 2
        if y.requires_grad:
            y.register_hook(lambda grad: grad * 2)
        break_graph()
        return y + 1

    return unary(f)


@program
def a_backward_hook_of_a_module() -> Case:
    module = Breaks()

    def hook(owner: nn.Module, gradients: Any, outer: Any) -> None:
        break_graph()

    module.register_full_backward_hook(hook)

    def f(x: Tensor) -> Tensor:
        return module(x) + 1

    return unary(f)


@program
def a_backward_inside() -> Case:
    weight = torch.ones(4, requires_grad=True)

    def f(x: Tensor) -> Tensor:
        loss = (x * weight).sum()
        loss.backward()
        gradient = weight.grad
        assert gradient is not None
        weight.grad = None
        return gradient + x

    return unary(f)


def _train_step(make: Callable[[List[nn.Parameter]], torch.optim.Optimizer]) -> Case:
    model = Residual()
    optimizer = make(list(model.parameters()))

    def f(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Case(f, [(example(),), (example(),)])


@program
def a_train_step_with_sgd() -> Case:
    return _train_step(lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9))


@program
def a_train_step_with_adam() -> Case:
    return _train_step(lambda parameters: torch.optim.Adam(parameters, lr=0.1))


@program
def a_train_step_with_adamw_one_by_one() -> Case:
    return _train_step(lambda parameters: torch.optim.AdamW(parameters, lr=0.1, foreach=False))


def _step_alone(make: Callable[[List[nn.Parameter]], torch.optim.Optimizer]) -> Case:
    model = nn.Linear(4, 4)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer = make(list(model.parameters()))
    return Case(lambda: optimizer.step(), [(), ()])


@program
def a_step_of_sgd_alone() -> Case:
    return _step_alone(lambda parameters: torch.optim.SGD(parameters, lr=0.1))


@program
def a_step_of_adam_alone() -> Case:
    return _step_alone(lambda parameters: torch.optim.Adam(parameters, lr=0.1))


@program
def a_step_of_rmsprop_alone() -> Case:
    return _step_alone(lambda parameters: torch.optim.RMSprop(parameters, lr=0.1))


@program
def a_step_with_a_closure() -> Case:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def f(x: Tensor) -> Any:
        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss

        return optimizer.step(closure)

    return Case(f, [(example(),), (example(),)])


@program
def a_step_with_hooks() -> Case:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: break_graph())

    def f(x: Tensor) -> Tensor:
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return Case(f, [(example(),), (example(),)])


@program
def methods_and_properties() -> Case:
    class Layer:
        def __init__(self, scale: float) -> None:
            self._scale = scale

        @property
        def scale(self) -> float:
            break_graph()
            return self._scale

        def __call__(self, x: Tensor) -> Tensor:
            return self.shifted(x) * self.scale

        def shifted(self, x: Tensor) -> Tensor:
            break_graph()
            return x + self._scale

    layer = Layer(2.0)

    def f(x: Tensor) -> Tensor:
        return layer(x) + layer.shifted(x)

    return unary(f)


@program
def an_autograd_function() -> Case:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> Any:
            return gradients[0] * 2

    def f(x: Tensor) -> Tensor:
        y = Doubled.apply(x)
        break_graph()
        return y + Doubled.apply(y)

    return unary(f)
