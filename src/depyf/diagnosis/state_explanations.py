"""Explain guards on PyTorch's global state: grad mode, autocast, the default dtype and the like."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence

from depyf.diagnosis.guard import StateChange
from depyf.diagnosis.guard_advice import STATE_ADVICE

MODE, AUTOCAST, GRADIENTS, TRANSFORM = (STATE_ADVICE[each] for each in ("", "autocast", "grad_mode", "transform"))

_DEVICES = {"cpu": "the CPU", "cuda": "CUDA"}


class StateExplanation(NamedTuple):
    """What changed; the old and the new value, if known; and how to avoid the change."""

    words: str
    before: Optional[str]
    now: Optional[str]
    advice: str


class _Setting(NamedTuple):
    """The start of PyTorch's name of a setting, its display name, and what to do."""

    key: str
    name: str
    advice: str = MODE


_SETTINGS = (
    _Setting("grad_mode", "grad mode", GRADIENTS),
    _Setting("autocast", "autocast", AUTOCAST),
    _Setting("deterministic_algorithms", "torch.use_deterministic_algorithms"),
    _Setting("default_dtype", "the default dtype"),
    _Setting("num_threads", "the number of threads", STATE_ADVICE["num_threads"]),
    _Setting("torch_function", "torch function overrides"),
    _Setting("allow_", "a setting of reduced precision"),
)


def explain_state(changed: Sequence[StateChange]) -> StateExplanation:
    """Explain changes of the global state; it has changed somewhere even if none is named."""
    parts = [_one(each) for each in changed or (StateChange(""),)]
    only = parts[0] if len(parts) == 1 else None
    return StateExplanation(
        "; ".join(dict.fromkeys(each.words for each in parts)),
        only and only.before,
        only and only.now,
        "; ".join(dict.fromkeys(advice for each in parts for advice in each.advice.split("; "))),
    )


def _one(change: StateChange) -> StateExplanation:
    key, now, autocast = change
    setting = next((each for each in _SETTINGS if key.startswith(each.key)), None)
    name = (key or "a global setting of PyTorch's") if setting is None else setting.name
    if autocast is not None:
        name = f"autocast for {_DEVICES.get(autocast[0], autocast[0])}"
    advice = MODE if setting is None else setting.advice
    if now in ("True", "False"):
        before, now = ("off", "on") if now == "True" else ("on", "off")
        return StateExplanation(f"{name} is {now}; this entry was compiled with {name} {before}", before, now, advice)
    if autocast is not None and autocast[1] == "dtype":
        name = f"the dtype of {name}"
    if now:
        return StateExplanation(f"{name} is {now}; this entry was compiled with another value", None, now, advice)
    words = f"{name} has changed since this entry was compiled" + (f" ({key})" if key else "")
    return StateExplanation(words, None, None, advice)


_OF_TENSORS = (
    ("Autocast", "comes under autocast", "does not come under autocast", AUTOCAST),
    ("FuncTorch", "comes from a torch.func transform", "comes from no torch.func transform", TRANSFORM),
    ("Autograd", "takes part in autograd", "takes no part in autograd (inference mode)", GRADIENTS),
)
"""The start of the dispatch keys that a mode adds to tensors; what a tensor with these keys, and without them, does."""


def explain_keys(name: str, new: List[str], gone: List[str]) -> Optional[StateExplanation]:
    """Explain that a tensor has gained or lost these dispatch keys; ``None`` if no mode explains it."""
    changed = [each for each in (*new, *gone) if each != "ADInplaceOrView"]
    for key, has, lacks, advice in _OF_TENSORS:
        if changed and all(each.startswith(key) for each in changed) and not (new and gone):
            words = f"{name} {has}; it did not" if new else f"{name} {lacks}; it did"
            return StateExplanation(f"{words} when this entry was compiled ({', '.join(changed)})", None, None, advice)
    return None
