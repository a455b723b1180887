"""The model of a run without the values that the program held: each field that may quote one, in one list.

``Hiding`` says how a text of each kind loses its values: one for ``values="types"``, one for bug reports.
"""

from __future__ import annotations

import re
from typing import Any, Container, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar, cast

from depyf.answers.shadowed import Shadowed
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import replace
from depyf.report.model.cache_lookup import CacheLookup
from depyf.report.model.run import (
    Artifact,
    Compilation,
    EntryGuard,
    FailedEntryGuard,
    Finding,
    GraphBreak,
    Run,
    Shadow,
    ShapeEvent,
    SourceFile,
)
from depyf.report.render.hidden_values import HiddenValues
from depyf.report.render.scrubbing import HIDDEN, without_literals, without_literals_of_line, without_values

Part = TypeVar("Part")


class Hiding:
    """``values="types"``: what the author wrote stays, and so do the files, which were written without values."""

    def __init__(self, values: HiddenValues) -> None:
        self.values = values

    def message(self, text: str) -> str:
        """Return a text for people without values."""
        return self.values.message(text)

    def guard(self, text: str) -> str:
        """Return the text of a guard without values."""
        return self.values.guard(text)

    def source(self, text: str) -> str:
        """Return a source file of the program as it is shown."""
        self.values.learn_source(text)
        return text

    def artifact(self, artifact: Artifact) -> Artifact:
        """Return a file of the dump as it is shown."""
        return artifact

    def metrics(self, metrics: Mapping[str, object]) -> Mapping[str, object]:
        """Return PyTorch's metrics of a compilation: numbers, and no texts."""
        return {name: value for name, value in metrics.items() if isinstance(value, (int, float)) or value is None}

    def settings(self, settings: Tuple[Tuple[str, ...], ...]) -> Tuple[Tuple[str, ...], ...]:
        """Return settings of PyTorch's."""
        return settings

    def lookup(self, lookup: CacheLookup) -> CacheLookup:
        """Return a look-up in a cache of PyTorch's; its key has settings."""
        return replace(lookup, reason=self.message(lookup.reason))


class BugReportHiding(Hiding):
    """For strangers: no texts and comments of the program's own source either, no metrics, and no settings."""

    def __init__(self) -> None:
        super().__init__(HiddenValues())

    def message(self, text: str) -> str:
        return without_values(super().message(text))

    def guard(self, text: str) -> str:
        return without_values(super().guard(text))

    def source(self, text: str) -> str:
        self.values.learn_source(text)
        return without_literals(text)

    def artifact(self, artifact: Artifact) -> Artifact:
        """Return the artifact without literals if it has the program's code or values; PyTorch's own code stays."""
        text = artifact.content
        if text is None:
            return artifact
        if artifact.kind in ("transformed", "full_code"):
            return replace(artifact, text=without_literals(text))
        if artifact.kind in ("graph", "kernels", "wrapper", "passes"):
            return replace(artifact, text=made_by_torch(text))
        return replace(artifact, text=without_values(text))

    def metrics(self, metrics: Mapping[str, object]) -> Mapping[str, object]:
        return {}

    def settings(self, settings: Tuple[Tuple[str, ...], ...]) -> Tuple[Tuple[str, ...], ...]:
        return ()

    def lookup(self, lookup: CacheLookup) -> CacheLookup:
        changed = tuple(replace(part, before="...", now="...") for part in lookup.changed)
        return replace(super().lookup(lookup), changed=changed, parts=(), settings=None)


def run_without_values(run: Run, hiding: Hiding) -> Run:
    """Return the run without values of the program; shapes and types stay, and sizes that guards check."""
    sources = _sources(run.sources, hiding)
    # Guards before messages, which may repeat what guards compare.
    compilations = tuple(_compilation(each, hiding) for each in run.compilations)
    words: Dict[str, str] = {}
    recompiles = tuple(
        replace(each, failed=tuple(_failed(one, hiding, words) for one in each.failed)) for each in run.recompiles
    )
    shadow = None if run.shadow is None else _shadow(run.shadow, hiding, words)
    shapes = tuple(_shape(each, hiding) for each in run.shapes)
    hidden_symbols = {new.text.partition(" ")[0] for new, old in zip(shapes, run.shapes) if new.text != old.text}
    return replace(
        run,
        sources=sources,
        compilations=_texts(compilations, hiding, "failure", "verdict_reason"),
        recompiles=_texts(recompiles, hiding, "advice"),
        command=_command(run.command),
        breaks=tuple(_break(each, hiding) for each in run.breaks),
        fallbacks=_texts(run.fallbacks, hiding, "cause", "reason", "advice"),
        cudagraph_skips=_texts(run.cudagraph_skips, hiding, "reason", "advice"),
        cache_lookups=tuple(map(hiding.lookup, run.cache_lookups)),
        cache_settings=hiding.settings(run.cache_settings),
        settings=hiding.settings(run.settings),
        cudagraph_rerecords=_texts(run.cudagraph_rerecords, hiding, "reason", "advice"),
        shapes=shapes,
        shadow=shadow,
        # The reasons of what was not fused have sizes of tensors.
        timings=tuple(
            replace(each, outside=_texts(each.outside, hiding, "reason"), not_fused=()) for each in run.timings
        ),
        kernels=tuple(replace(each, unfused=()) for each in run.kernels),
        findings=tuple(_finding(each, hiding, words) for each in run.findings),
        notes=_messages(run.notes, hiding),
        failures=_messages(run.failures, hiding),
        artifacts=tuple(hiding.artifact(_without_sizes(each, hidden_symbols)) for each in run.artifacts),
    )


def _sources(sources: Sequence[SourceFile], hiding: Hiding) -> Tuple[SourceFile, ...]:
    """Return the source files; what they say is noted before anything else is hidden, as it is no value."""
    for each in sources:
        if each.text is not None and each.library:
            hiding.values.learn_source(each.text)
    return tuple(
        each if each.text is None or each.library else replace(each, text=hiding.source(each.text)) for each in sources
    )


def _compilation(each: Compilation, hiding: Hiding) -> Compilation:
    return replace(
        each,
        guards=tuple(_guard(one, hiding) for one in each.guards),
        metrics=hiding.metrics(each.metrics),
        restarts=_messages(each.restarts, hiding),
        dynamic=tuple(hiding.guard(one) for one in each.dynamic),
    )


def _guard(each: EntryGuard, hiding: Hiding) -> EntryGuard:
    return replace(each, text=hiding.guard(each.text), source=hiding.guard(each.source))


def _failed(each: FailedEntryGuard, hiding: Hiding, words: Dict[str, str]) -> FailedEntryGuard:
    """Return a failed guard without the values that it compared; note its words in ``words``."""
    text = hiding.guard(each.text)
    before, now, said = each.before, each.now, each.words
    if text != each.text:  # it compares values, and no shapes
        before, now = hiding.values.value(before), hiding.values.value(now)
        for old, new in ((each.before, before), (each.now, now)):
            if old is not None and new is not None and old != new:
                said = re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w])", lambda _, new=new: new, said)  # type: ignore[misc]
    said = hiding.message(said)
    words[each.words] = said
    return replace(
        each,
        text=text,
        words=said,
        checked=hiding.message(each.checked),
        before=None if before is None else hiding.message(before),
        now=None if now is None else hiding.message(now),
    )


def _shadow(shadow: Shadow, hiding: Hiding, words: Dict[str, str]) -> Shadow:
    """Return what ``shadow`` has found without the values that it quotes; note its words in ``words``."""
    found = []
    for each in shadow.found:
        words[each.cause] = said = _cause(each.cause, each.values, hiding)
        found.append(replace(each, cause=said, values=()))
    hidden = _texts(found, hiding, "difference", "advice")
    return replace(shadow, found=hidden, not_checked=_texts(shadow.not_checked, hiding, "reason"))


def _cause(said: str, values: Sequence[str], hiding: Hiding) -> str:
    for value in sorted(values, key=len, reverse=True):
        said = said.replace(value, "...")
    return hiding.message(said)


def shadowed_without_values(shadowed: Shadowed, hiding: Hiding) -> Shadowed:
    """Return the answer of ``shadow`` without the values that it quotes."""
    found = [replace(each, cause=_cause(each.cause, each.values, hiding), values=()) for each in shadowed.findings]
    reasons: Dict[str, int] = {}
    for reason, count in shadowed.counts.reasons.items():
        said = hiding.message(reason)
        reasons[said] = reasons.get(said, 0) + count
    counts = replace(shadowed.counts, reasons=reasons)
    return Shadowed(_texts(found, hiding, "difference", "advice"), counts)


def _break(each: GraphBreak, hiding: Hiding) -> GraphBreak:
    (shown,) = _texts([each], hiding, "reason", "explanation", "advice")
    return replace(shown, hints=_messages(each.hints, hiding))


def _finding(each: Finding, hiding: Hiding, words: Mapping[str, str]) -> Finding:
    title, text = each.title, each.text
    for old in sorted(words, key=len, reverse=True):
        title, text = title.replace(old, words[old]), text.replace(old, words[old])
    return replace(each, title=hiding.message(title), text=hiding.message(text))


_SYMBOL = regex(r"(?P<head>\S+ = (?P<source>.*), )(?P<value>-?[\d.]+(?:e[-+]?\d+)?)(?P<tail> here, in )")
_SPECIALISED = regex(r"(?P<head>\S+ \((?P<source>.*)\) is )(?P<value>\S+)(?P<tail> in this graph)")
_OF_TENSOR = regex(r"\.(?:size|stride|storage_offset)\(|\.shape\b|\bsize \d|\blen\(")


def _shape(each: ShapeEvent, hiding: Hiding) -> ShapeEvent:
    """Return an event of a symbol; the value of a number of the program's (not of a size) is hidden."""
    match = _SYMBOL.match(each.text) or _SPECIALISED.match(each.text)
    text = each.text
    if match is not None and not _OF_TENSOR.search(match["source"]):
        value = hiding.values.value(match["value"])
        text = f"{match['head']}{value}{match['tail']}{text[match.end() :]}"
    return replace(each, text=hiding.message(text), reason=hiding.message(each.reason))


def _without_sizes(artifact: Artifact, symbols: Container[str]) -> Artifact:
    """Return the artifact without the values of these symbols."""
    memory = artifact.memory
    if memory is None or not any(each in symbols for each in memory.sizes):
        return artifact
    sizes = {name: value for name, value in memory.sizes.items() if name not in symbols}
    return replace(artifact, memory=replace(memory, sizes=sizes))


def _messages(texts: Sequence[str], hiding: Hiding) -> Tuple[str, ...]:
    return tuple(map(hiding.message, texts))


def _texts(parts: Sequence[Part], hiding: Hiding, *names: str) -> Tuple[Part, ...]:
    """Return parts of a run without the values in their texts of these names; an unknown text stays None."""
    found = []
    for part in parts:
        texts: Dict[str, Optional[str]] = {name: getattr(part, name) for name in names}
        hidden = {name: hiding.message(text) for name, text in texts.items() if text is not None}
        found.append(replace(cast(Any, part), **hidden))
    return tuple(found)


_QUOTED_LINE = regex(r"(, code: )(.*)$", re.MULTILINE)


def made_by_torch(text: str) -> str:
    """Return code that PyTorch has made, which has to run; the lines of the program that it quotes lose literals."""
    return _QUOTED_LINE.sub(lambda match: match.group(1) + without_literals_of_line(match.group(2)), text)


def _command(command: Sequence[str]) -> Tuple[str, ...]:
    """Return the program and the names of its options; values may be anything."""
    kept: List[str] = list(command[:2])
    for each in command[2:]:
        kept.append(each.partition("=")[0] + (f"={HIDDEN}" if "=" in each else "") if each.startswith("-") else HIDDEN)
    return tuple(kept)
