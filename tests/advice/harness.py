"""Follow a piece of advice: run a small program, edit it as the advice says, run it again, and compare the counts.

A ``Row`` is a program that makes one or several rules of ``depyf.diagnosis`` give advice, and what the advice has to
achieve. Counts come from a backend that counts its calls and from Dynamo's counters, never from depyf. ``problems``
returns what is wrong with a row; ``test_advice.py`` requires that nothing is.

Programs are run in this process with these names:

``compile(function, **options)``   ``torch.compile`` with the counting backend (also ``backend``)
``call(compiled, *args, **kwargs)``   call, and record the result; before that, depyf is asked ``why``
``asked(compiled, *args, **kwargs)``   ask ``why`` and do not call
``out(value)``   record a result
``plain()``   count a call that runs as plain Python: ``if not torch.compiler.is_compiling(): plain()``

What a program records has to stay the same when the advice is followed.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import linecache
import logging
import shutil
import sys
import tempfile
import textwrap
import types
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import torch
import torch._dynamo
import torch._dynamo.utils
from rules import is_said

import depyf

Edit = Tuple[Tuple[str, str], ...]
"""Replacements in the text of a program. What is replaced occurs once."""

FEWER, EXPECTED, NOTHING = "fewer", "expected", "none"
"""What advice promises: smaller counts; that further calls change nothing; that nothing helps."""

GRAPHS, COMPILATIONS, BREAKS, PLAIN, RAISED = "graphs", "compilations", "breaks", "plain", "raised"
"""The counts: calls of the backend, frames compiled, graph breaks, calls of ``plain``, and 1 for an exception that left
the program."""


@dataclass(frozen=True)
class Remedy:
    """One of the things that an advice names.

    ``words`` occur in the advice. For ``FEWER`` the ``edit`` and the ``settings`` (lines before the program) bring the
    counts down to ``after``. For ``EXPECTED`` the counts are ``after`` when the lines ``more`` run at the end of the
    program. For ``NOTHING`` neither count gets smaller with the edit and the settings, which are what a reader might
    try. ``counts_only`` says why the outputs are not those of the program as it was.
    """

    promise: str
    words: str
    edit: Edit = ()
    settings: str = ""
    more: str = ""
    after: Mapping[str, int] = field(default_factory=dict)
    counts_only: str = ""


def fewer(words: str, *edit: Tuple[str, str], settings: str = "", counts_only: str = "", **after: int) -> Remedy:
    return Remedy(FEWER, words, edit, settings, after=after, counts_only=counts_only)


def expected(words: str, more: str, **after: int) -> Remedy:
    return Remedy(EXPECTED, words, more=more, after=after)


def nothing(words: str, *edit: Tuple[str, str], settings: str = "") -> Remedy:
    return Remedy(NOTHING, words, edit, settings)


@dataclass(frozen=True)
class Row:
    """A program that makes ``rules`` give advice, the counts of the program as it is, and the remedies, the cheapest
    first.

    ``rules`` are keys of the tables in ``depyf.diagnosis``, as ``rules.py`` lists them. ``says`` is what the statements
    (of ``why``, or of the findings) have to contain, ``never`` what neither they nor the advice may contain.
    ``skip`` returns why the row can't be run here, or None. ``own_report`` is why the findings and ``watch`` have
    another advice than ``why``, ``own_why`` the reverse, and ``own_watch`` why ``watch`` has another one than both.
    """

    name: str
    rules: Tuple[Any, ...]
    program: str
    before: Mapping[str, int]
    remedies: Tuple[Remedy, ...]
    says: Tuple[str, ...] = ()
    never: Tuple[str, ...] = ()
    skip: Callable[[], Optional[str]] = lambda: None
    own_report: str = ""
    own_why: str = ""
    own_watch: str = ""


def row(
    name: str,
    rules: Any,
    program: str,
    before: Mapping[str, int],
    *remedies: Remedy,
    says: Tuple[str, ...] = (),
    never: Tuple[str, ...] = (),
    skip: Callable[[], Optional[str]] = lambda: None,
    own_report: str = "",
    own_why: str = "",
    own_watch: str = "",
) -> Row:
    """Return a row of a program that is indented as the code around it; ``rules`` is a list of them, or one."""
    listed = tuple(rules) if isinstance(rules, list) else (rules,)
    text = textwrap.dedent(program).lstrip("\n")
    return Row(name, listed, text, before, remedies, says, never, skip, own_report, own_why, own_watch)


@dataclass
class Ran:
    """What a run of a program showed."""

    counts: Dict[str, int]
    outputs: List[object] = field(default_factory=list)
    answers: List[Any] = field(default_factory=list)
    """The results of ``why`` for calls that an entry misses."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    watched: str = ""
    """What ``watch`` reports, and its summary."""
    error: str = ""

    @property
    def advice(self) -> str:
        """The advice of ``why``, in one text."""
        return "\n".join(dict.fromkeys(each for answer in self.answers for each in answer.advice))

    @property
    def statements(self) -> str:
        """All that ``why`` says."""
        return "\n".join(map(str, self.answers))

    @property
    def causes(self) -> List[str]:
        """The kinds of the guards that fail, as depyf names them."""
        failed = (guard for answer in self.answers for entry in answer.entries for guard in entry.failed)
        return list(dict.fromkeys(guard.explanation.kind for guard in failed))

    @property
    def reported(self) -> str:
        """The findings, and the advice for each recompilation and graph break, as the page has them."""
        texts = [f"{each['title']}. {each['text']}" for each in self.manifest.get("findings", ())]
        for listed in ("recompiles", "breaks", "graph_breaks", "fallbacks"):
            texts += [f"{each.get('advice', '')} {each.get('url', '')}" for each in self.manifest.get(listed, ())]
        return "\n".join(texts)


def edited(program: str, remedy: Remedy) -> str:
    """Return the text of the program with the advice followed."""
    for old, new in remedy.edit:
        if program.count(old) != 1:
            raise ValueError(f"{old!r} is {program.count(old)} times in the program")
        program = program.replace(old, new)
    return "\n".join(each.strip("\n") for each in (remedy.settings, program, remedy.more) if each) + "\n"


_FOLDER = tempfile.mkdtemp(prefix="advice_")


def run(program: str, *, ask: bool = False, dump: bool = False) -> Ran:
    """Run a program from a fresh Dynamo, and restore all settings afterwards.

    ``ask`` is whether ``depyf.why`` is asked before each ``call``, ``dump`` whether all runs in ``prepare_debug`` and
    ``watch``.
    """
    ran = Ran({})
    count = {GRAPHS: 0, PLAIN: 0, RAISED: 0}
    file = Path(_FOLDER) / "program.py"
    file.write_text(program)
    linecache.checkcache(str(file))

    def backend(graph: torch.fx.GraphModule, inputs: Sequence[object]) -> Callable[..., object]:
        count[GRAPHS] += 1
        return graph.forward

    def asked(compiled: Callable[..., object], *args: object, **kwargs: object) -> None:
        answer = depyf.why(compiled, *args, **kwargs) if ask else None
        if answer is not None and answer.hit is None and answer.entries:
            ran.answers.append(answer)

    def call(compiled: Callable[..., object], *args: object, **kwargs: object) -> object:
        asked(compiled, *args, **kwargs)
        result = compiled(*args, **kwargs)
        ran.outputs.append(copied(result))
        return result

    def plain() -> None:
        count[PLAIN] += 1

    module = types.ModuleType("advised")
    module.__file__ = str(file)
    vars(module).update(
        torch=torch,
        depyf=depyf,
        backend=backend,
        compile=functools.partial(torch.compile, backend=backend),
        asked=asked,
        call=call,
        out=lambda value: ran.outputs.append(copied(value)),
        plain=plain,
    )
    with fresh(), contextlib.ExitStack() as stack:
        sys.modules[module.__name__] = module
        stack.callback(sys.modules.pop, module.__name__)
        folder = tempfile.mkdtemp(dir=_FOLDER)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        if dump:
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            watched = stack.enter_context(depyf.watch(stream=io.StringIO()))
        code = compile(program, str(file), "exec")
        try:
            with depyf.prepare_debug(folder) if dump else contextlib.nullcontext():
                exec(code, vars(module))
        except Exception as error:
            count[RAISED], ran.error = 1, f"{type(error).__name__}: {error}"
        if dump:
            ran.watched = str(watched)
            ran.manifest = json.loads((Path(folder) / "manifest.json").read_text())
        ran.counts = {
            **count,
            COMPILATIONS: torch._dynamo.utils.counters["frames"]["ok"],
            BREAKS: len(torch._dynamo.utils.graph_break_reasons),
        }
    return ran


@contextlib.contextmanager
def fresh() -> Iterator[None]:
    """Run with nothing compiled and Dynamo's counters at zero; restore the settings that programs change."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    config = torch._dynamo.config
    settings = config.save_config()
    state = (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads())
    deterministic = torch.are_deterministic_algorithms_enabled()
    torch.manual_seed(0)
    # pytest listens to PyTorch's structured trace, which then describes tensors: it fails for some subclasses.
    trace = logging.getLogger("torch.__trace")
    listening = [each for each in trace.handlers if type(each).__module__.startswith("_pytest.")]
    for each in listening:
        trace.removeHandler(each)
    try:
        yield
    finally:
        trace.handlers += listening
        torch.compiler.set_stance("default")
        torch._dynamo.reset()
        if config.save_config() != settings:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # settings that do nothing any more
                config.load_config(settings)
        torch.set_default_device(None)
        torch.set_default_dtype(state[0])
        torch.set_grad_enabled(state[1])
        torch.set_num_threads(state[2])
        torch.use_deterministic_algorithms(deterministic)


def copied(value: object) -> object:
    """Return the value as it is now: programs change tensors in place."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        return [copied(each) for each in value]
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    return value


def equal(one: object, other: object) -> bool:
    """Return whether two recorded results are the same; tensors by value, class and dtype, and NaN equals itself."""
    if isinstance(one, torch.Tensor):
        if not isinstance(other, torch.Tensor) or one.dtype != other.dtype or one.shape != other.shape:
            return False
        return type(one) is not type(other) or bool(torch.allclose(one, other, equal_nan=True))
    if isinstance(one, (list, dict)):
        if type(one) is not type(other) or len(one) != len(other):  # type: ignore[arg-type]
            return False
        keys = range(len(one)) if isinstance(one, list) else one
        return all(equal(one[key], other[key]) for key in keys)  # type: ignore[index]
    return one == other


def problems(row: Row, rules: Mapping[Any, str]) -> List[str]:
    """Return what is wrong with the advice of a row; empty if following it does what it says. ``rules`` has the texts
    of the rules."""
    ran = run(row.program, ask=True, dump=True)
    found = [f"before: {_different(row.before, ran.counts)}"] if _different(row.before, ran.counts) else []
    said = f"{ran.statements}\n{ran.reported}" + (f"\n{ran.error}" if ran.error else "")
    found += [f"it does not say {each!r}" for each in row.says if each not in said]
    found += [f"it says {each!r}" for each in row.never if each in f"{said}\n{ran.watched}"]
    found += _wrong_words(row, ran, rules)
    advice = f"{ran.advice}\n{ran.reported}"
    found += [f"{each!r} gives no advice" for each in row.rules if not is_said(rules[each], advice)]
    afters = []
    for remedy in row.remedies:
        if remedy.promise == EXPECTED or remedy.edit or remedy.settings:
            after = run(edited(row.program, remedy))
            afters.append((remedy, after))
            found += [f"{remedy.words!r}: {text}" for text in _wrong_counts(row, ran, remedy, after)]
    costs = [_cost(each.after) for each, _ in afters if each.promise == FEWER]
    if costs and costs[0] > min(costs):
        found.append("the remedy that is named first is not the cheapest")
    if found:
        found.append(
            f"why: {ran.statements}\nfindings: {ran.reported}\n{ran.watched}\ncounts: {ran.counts} {ran.error}"
        )
    return found


def _wrong_words(row: Row, ran: Ran, rules: Mapping[Any, str]) -> Iterator[str]:
    texts = {"why": ran.advice, "the report": ran.reported, "watch": ran.watched}
    if not ran.answers or row.own_why:
        del texts["why"]
    if row.own_report:
        del texts["the report"]
    if row.own_report or row.own_watch or ran.counts[RAISED]:  # the exception says what ``watch`` does not
        del texts["watch"]
    for name, text in texts.items():
        for remedy in row.remedies:
            if remedy.words.lower() not in text.lower():
                yield f"{name} does not advise {remedy.words!r}"
    for rule in row.rules:  # other advice in the texts has some of the same words
        positions = [rules[rule].lower().find(each.words.lower()) for each in row.remedies]
        known = [each for each in positions if each >= 0]
        if known != sorted(known):
            yield "the remedies are named in another order"


def _wrong_counts(row: Row, ran: Ran, remedy: Remedy, after: Ran) -> Iterator[str]:
    different = _different(remedy.after, after.counts)
    if different:
        yield f"{different} {after.error}"
    if remedy.promise == FEWER:
        worse = [name for name, number in remedy.after.items() if number > ran.counts[name]]
        better = [name for name, number in remedy.after.items() if number < ran.counts[name]]
        if worse or not better:
            yield f"no improvement: {dict(ran.counts)}, and then {dict(after.counts)} {after.error}"
        if not remedy.counts_only and not equal(ran.outputs, after.outputs):
            yield f"other results: {ran.outputs}, and then {after.outputs} {after.error}"
    if remedy.promise == NOTHING and any(after.counts[name] < row.before[name] for name in row.before):
        yield f"it does help: {dict(ran.counts)}, and then {dict(after.counts)}"


def _different(wanted: Mapping[str, int], found: Mapping[str, int]) -> str:
    different = {name: found[name] for name, number in wanted.items() if found[name] != number}
    return f"{different} instead of {dict(wanted)}" if different else ""


def _cost(counts: Mapping[str, int]) -> Tuple[int, ...]:
    return tuple(counts.get(name, 0) for name in (RAISED, BREAKS, COMPILATIONS, GRAPHS, PLAIN))
