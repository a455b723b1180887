"""Select among compiled codes without PyTorch's guards."""

from __future__ import annotations

import contextlib
import threading
import weakref
from types import CodeType, FunctionType, MethodType
from typing import Any, Callable, Iterator, List, Optional

from depyf.dynamo.hooks import frame_evaluation, torch_names

__all__ = ["TorchCompileWrapperWithCustomDispatcher"]

_calling = threading.local()
"""The wrapper whose compiled callable this thread runs: it owns what is compiled meanwhile."""


class TorchCompileWrapperWithCustomDispatcher:
    """Base class of objects that select the compiled code of their ``forward`` themselves.

    A subclass defines ``forward`` and ``__call__``. A call of ``self.compiled_callable`` compiles ``forward`` if
    needed, and every transformed code object of this instance is added to ``self.compiled_codes``. Inside of ``with
    self.dispatch_to_code(index):`` a call of ``self.forward`` runs that code object without guards.

    ``compiled_callable`` is ``torch.compile(self.forward)`` or similar. With ``use_custom_dispatcher=False`` no code is
    collected.
    """

    def __init__(self, compiled_callable: Callable[..., Any], use_custom_dispatcher: bool = True) -> None:  # noqa: FBT001, FBT002
        self.use_custom_dispatcher = use_custom_dispatcher
        self.compiled_codes: List[CodeType] = []
        self.original_code_object: CodeType = type(self).forward.__code__
        self.compiled_callable = compiled_callable
        if use_custom_dispatcher:
            torch_names.require_torch("optimization.TorchCompileWrapperWithCustomDispatcher")
            self.compiled_callable = _noting_the_caller(compiled_callable, weakref.ref(self))
            handle = frame_evaluation.register_bytecode_hook(_collector(weakref.ref(self)))
            if handle is not None:
                weakref.finalize(self, handle.remove)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the code that PyTorch selects; subclasses override it to select code themselves."""
        return self.compiled_callable(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result: this is the function to compile, which subclasses define."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def bytecode_hook(self, old_code: CodeType, new_code: CodeType) -> None:
        """Receive every code object that was compiled while this instance was running its compiled callable."""
        if old_code is self.original_code_object:
            self.compiled_codes.append(new_code)

    @contextlib.contextmanager
    def dispatch_to_code(self, index: int) -> Iterator[None]:
        """Make ``self.forward`` run ``self.compiled_codes[index]`` inside of the context, and restore it afterwards."""
        missing = object()
        before = vars(self).get("forward", missing)
        forward = type(self).forward
        function = FunctionType(
            self.compiled_codes[index], forward.__globals__, forward.__name__, forward.__defaults__, forward.__closure__
        )
        function.__kwdefaults__ = forward.__kwdefaults__
        # On the instance: other instances of the class, also in other threads, are not affected.
        vars(self)["forward"] = MethodType(function, self)
        try:
            yield
        finally:
            if before is missing:
                del vars(self)["forward"]
            else:
                vars(self)["forward"] = before


def _noting_the_caller(compiled_callable: Callable[..., Any], wrapper: Any) -> Callable[..., Any]:
    """Return ``compiled_callable``, recording that ``wrapper`` calls it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        before = getattr(_calling, "wrapper", None)
        _calling.wrapper = wrapper
        try:
            return compiled_callable(*args, **kwargs)
        finally:
            _calling.wrapper = before

    return call


def _collector(wrapper: Any) -> Callable[[CodeType, CodeType], Optional[CodeType]]:
    """Return the bytecode hook of one instance, which it must not keep alive."""

    def hook(old_code: CodeType, new_code: CodeType) -> Optional[CodeType]:
        instance = wrapper()
        if instance is not None and getattr(_calling, "wrapper", None) is wrapper:
            instance.bytecode_hook(old_code, new_code)
        return None

    return hook
