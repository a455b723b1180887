"""Custom passes that did not run because PyTorch took the compiled graph out of its caches."""

from __future__ import annotations

from typing import Dict, List, Tuple

from depyf.dynamo.capture.records import CachedWithPasses
from depyf.dynamo.capture.session import Session
from depyf.dynamo.hooks import torch_settings
from depyf.torch_trace.events import AOTAUTOGRAD_HIT, FX_GRAPH_HIT, Event

_OF_INDUCTOR = (
    "post_grad_custom_pre_pass",
    "post_grad_custom_post_pass",
    "_pre_fusion_custom_pass",
    "_post_fusion_custom_pass",
)
_BEFORE_PARTITIONING = ("joint_custom_pre_pass", "joint_custom_post_pass")

_NOT_RUN_AFTER = {FX_GRAPH_HIT: _OF_INDUCTOR, AOTAUTOGRAD_HIT: (*_BEFORE_PARTITIONING, *_OF_INDUCTOR)}
"""Settings of ``torch._inductor.config`` whose passes run after the cache look-up."""


def note_custom_passes(session: Session, event: Event) -> None:
    """Record the custom passes that are set and do not run, if ``event`` says that the graph comes from a cache."""
    settings = _NOT_RUN_AFTER.get(event.name)
    passes = torch_settings.custom_passes(settings) if settings is not None else ()
    if passes:
        session.add(CachedWithPasses(event.compile_id, passes))


def cached_passes_text(session: Session) -> List[str]:
    """Return a note for each group of passes that did not run, with the compile ids."""
    passes_of: Dict[str, Dict[str, None]] = {}
    for record in session.records(CachedWithPasses):
        passes_of.setdefault(record.compile_id or "?", {}).update(dict.fromkeys(record.passes))
    groups: Dict[Tuple[str, ...], List[str]] = {}
    for compile_id, passes in passes_of.items():
        groups.setdefault(tuple(passes), []).append(compile_id)
    return [
        f"{', '.join(passes)} did not run for compile id {', '.join(ids)}: PyTorch took the compiled graph from its "
        "caches. If the pass has changed since it was compiled, its uuid() must return another value; "
        "prepare_debug(..., force_recompile=True) recompiles"
        for passes, ids in groups.items()
    ]
