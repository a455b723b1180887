"""Check what the schemas of the program's custom operators say, by running them: compiled code relies on it.

An operator may write to an argument that its schema does not mark, return memory of an argument, give other results
each time, or draw random numbers without the tag. Eager mode does not mind; compilers reorder, merge and remove calls
on the strength of the schema. What was seen is said of the operator, whether results differ or not.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Callable,
    ContextManager,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from depyf.base.asynchronous import synchronous
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.hooks.pytree import mapped, tensors
from depyf.dynamo.observe.graph_facts import draws_random_numbers
from depyf.dynamo.questions.compare.judging import Judge
from depyf.dynamo.questions.compare.node_values import storage_of
from depyf.dynamo.questions.compare.recorded import RecordedCompilation, kept, unchanged
from depyf.dynamo.scripts.imports import is_own_library

if TYPE_CHECKING:
    import torch

_WRITES = "writes to its argument {}, which its schema does not say"
_ALIAS = "returns memory of its argument {}, which its schema does not say"
_OTHER = "gives other results for the same arguments, each time that it is called"
_RANDOM = "draws random numbers, which its tags do not say"

_ADVICE = {
    _WRITES: "declare it (mutates_args)",
    _ALIAS: "return a copy",
    _OTHER: "no comparison can tell its results from wrong ones",
    _RANDOM: "give it the tag torch.Tag.nondeterministic_seeded",
}

_Args = Tuple[object, ...]
_Given = Tuple[_Args, Dict[str, object]]

_REPLACED = ("rand", "bernoulli", "dropout", "uniform", "normal")
"""Parts of the names of operators whose numbers Inductor draws with a generator of its own."""


def name_of_operator(target: object) -> str:
    """Return the qualified name of an operator (``aten::add``), "" for anything else."""
    operators = private_names.OPERATORS.holder()
    if isinstance(target, operators.OpOverload):
        target = target.overloadpacket
    return str(private_names.QUALIFIED_NAME.of(target)) if isinstance(target, operators.OpOverloadPacket) else ""


def custom_operators(compilations: Sequence[RecordedCompilation]) -> Set[str]:
    """Return the qualified names of the operators in these graphs that are not PyTorch's own."""
    found: Set[str] = set()
    for node in _nodes(compilations):
        # A mutable operator is the first argument of ``auto_functionalized``.
        found |= {name_of_operator(each) for each in (node.target, *node.args[:1])}
    return {name for name in found if name and is_own_library(name)}


def own_random_numbers(compilations: Sequence[RecordedCompilation], backend: str) -> Optional[str]:
    """Return a note about the random numbers in these graphs, None without any."""
    drawing = {str(node.target) for node in _nodes(compilations) if draws_random_numbers(node)}
    if not drawing:
        return None
    differ = "differ" if any(part in name for name in drawing for part in _REPLACED) else "may differ"
    return (
        f"it draws random numbers ({', '.join(sorted(drawing))}): with {backend} they {differ} from those of eager "
        "mode with the same seed, unless torch._inductor.config.fallback_random is set, as it was for this comparison"
    )


def _nodes(compilations: Sequence[RecordedCompilation]) -> Iterator[torch.fx.Node]:
    for compilation in compilations:
        for graph in compilation.graphs.values():
            yield from graph.copied.graph.nodes


class OperatorCheck:
    """Runs each call of the operators of these names twice, and notes what their schemas do not say."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = set(names)
        self._seen: Dict[str, Dict[str, str]] = {}

    @property
    def hidden(self) -> Mapping[str, str]:
        """What the schema of an operator does not say, by the operator's name."""
        return {name: " and ".join(seen) for name, seen in self._seen.items()}

    @property
    def notes(self) -> List[str]:
        return [
            f"the custom operator {name} {words}: compiled code may differ from eager mode ({advice})"
            for name, seen in self._seen.items()
            for words, advice in seen.items()
        ]

    def mode(self) -> ContextManager[object]:
        """Return the mode to run the program in."""
        base = private_names.DISPATCH_MODE.require()
        check = self._call

        class Checking(base):  # type: ignore[misc, valid-type]
            supports_higher_order_operators = True

            def __torch_dispatch__(
                self,
                func: Callable[..., object],
                types: object,
                args: Tuple[object, ...] = (),
                kwargs: Optional[Dict[str, object]] = None,
            ) -> object:
                return check(func, args, kwargs or {})

        return Checking()

    def _call(self, operator: Callable[..., object], args: _Args, kwargs: Dict[str, object]) -> object:
        import torch

        name = name_of_operator(operator)
        if name not in self._names:
            return operator(*args, **kwargs)
        before = mapped(_copied, (args, kwargs))
        state = torch.get_rng_state()
        result = operator(*args, **kwargs)
        seeded = getattr(torch_names.find("torch", "Tag"), "nondeterministic_seeded", None)
        tagged = seeded is not None and seeded in getattr(operator, "tags", ())
        if not tagged and not torch.equal(state, torch.get_rng_state()):
            self._note(name, _RANDOM)
        for argument, value, old in _arguments(operator, (args, kwargs), before):
            if not unchanged(value, old):
                self._note(name, _WRITES, argument)
            if storage_of(value) in [storage_of(each) or each for each in tensors(result)]:
                self._note(name, _ALIAS, argument)
        if not self._seen.get(name):
            self._again(name, operator, before, state, tensors(result))
        return result

    def _again(
        self,
        name: str,
        operator: Callable[..., object],
        before: _Given,
        state: torch.Tensor,
        results: Sequence[torch.Tensor],
    ) -> None:
        """Call the operator once more with what it got, and compare."""
        import torch

        now = torch.get_rng_state()
        first = kept(results)
        try:
            torch.set_rng_state(state)
            again = tensors(operator(*before[0], **before[1]))
        except synchronous():  # one that can't be called twice says nothing
            return
        finally:
            torch.set_rng_state(now)
        if not all(Judge().measure("", other, each).right for other, each in zip(again, first)):
            self._note(name, _OTHER)

    def _note(self, name: str, words: str, argument: str = "") -> None:
        self._seen.setdefault(name, {})[words.format(argument)] = _ADVICE[words]


def _arguments(operator: object, given: _Given, before: _Given) -> Iterator[Tuple[str, torch.Tensor, torch.Tensor]]:
    """Yield name, value and copy from before of the tensors that an operator only reads, by its schema."""
    args, kwargs = given
    old_args, old_kwargs = before
    schema = private_names.SCHEMA.of(operator)
    for position, argument in enumerate([] if schema is None else schema.arguments):
        if argument.alias_info is not None:
            continue
        value = args[position] if position < len(args) else kwargs.get(argument.name)
        old = old_args[position] if position < len(args) else old_kwargs.get(argument.name)
        yield from ((argument.name, *pair) for pair in zip(tensors(value), tensors(old)))


def _copied(value: object) -> object:
    import torch

    return value.detach().clone() if isinstance(value, torch.Tensor) else value
