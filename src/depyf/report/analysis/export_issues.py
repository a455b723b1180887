"""Read what ``torch.export`` (``draft_export``) found unsound, from torch's trace, as findings."""

from __future__ import annotations

from collections import Counter
from typing import List, Mapping, Optional, Sequence

from depyf.quick_dataclass import replace
from depyf.report.analysis.shapes import own_places
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Finding, Place
from depyf.torch_trace.events import Event

_NO_FAKE, _OTHER_FAKE = "missing_fake_kernel", "mismatched_fake_kernel"
_TAKEN = frozenset({"propagate_real_tensors", "propagate_real_tensors_provenance"})

_REGISTER = "torch.export can't know what it returns: register one with torch.library.register_fake."
_AGREE = (
    "What it returns has another size, stride, dtype or device than the operator's own result: mend the fake kernel."
)
_CHECK = "It depends on data, and the program holds for this result only: say so with torch._check, or avoid the test."


def export_issues(events: Sequence[Event], names: Mapping[object, str], sources: Sources) -> Sequence[Finding]:
    """Return operators without or with a wrong fake kernel, and tests of data that were taken as for the examples, each
    once."""
    met: List[Finding] = []
    for event in events:
        if not isinstance(event.meta, Mapping):
            continue
        operator = event.meta.get("op")
        if event.name == _NO_FAKE:
            met.append(Finding(f"{operator} has no fake kernel", _REGISTER))
        elif event.name == _OTHER_FAKE:
            reason = str(event.meta.get("reason") or "").strip()
            met.append(Finding(f"The fake kernel of {operator} is wrong", f"{reason} {_AGREE}".strip()))
        elif event.name in _TAKEN:
            stack = own_places(event.meta.get("user_stack") or event.meta.get("stack"), names, sources)
            place: Optional[Place] = stack[-1] if stack else None
            title = f"{event.meta.get('expr')} was taken as {event.meta.get('result')}"
            met.append(Finding(title, f"{_where(event.meta)}{_CHECK}", place=place))
    return tuple(replace(issue, count=times) for issue, times in Counter(met).items())


def _where(meta: Mapping[str, object]) -> str:
    """Return the user's variables that hold the symbols: ``Here n is u0. ``."""
    frame = meta.get("frame_locals")
    held = frame.get("locals") if isinstance(frame, Mapping) else None
    named = [
        f"{name} is {', '.join(map(str, symbols))}"
        for name, symbols in (held.items() if isinstance(held, Mapping) else ())
        if isinstance(symbols, list) and symbols
    ]
    return f"Here {'; '.join(named)}. " if named else ""
