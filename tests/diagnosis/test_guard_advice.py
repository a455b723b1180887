"""Advice for recompilations: what must and must not be reported, by cause and by the origin of the value."""

from __future__ import annotations

import pytest

from depyf.diagnosis.guard_advice import (
    ANY_FRAME,
    GuardCause,
    GuardedFrame,
    ValueOrigin,
    advice_for_guard,
    origin_of,
)
from depyf.diagnosis.guard_explanations import explain
from depyf.diagnosis.guard_text import read

RESUMED = GuardedFrame(resumes=True)
STARRED = GuardedFrame(positional="args", keywords="kw")

TABLE = [
    # the guard, the function, what must be said, what must not
    ("tensor 'x' size mismatch at index 1. expected 2, actual 3", ANY_FRAME, "mark_dynamic(x, 1)", "graph break"),
    (
        "tensor 'h' size mismatch at index 0. expected 2, actual 3",
        RESUMED,
        "the arguments that it comes",
        "mark_dynamic(h",
    ),
    ("tensor '___stack0' size mismatch at index 0. expected 2, actual 3", RESUMED, "dynamic=True", "___stack0"),
    ("tensor 'x' size mismatch at index 0. expected 2, actual 1", ANY_FRAME, "pad to 2 or more", "dynamic=True"),
    ("tensor 'h' size mismatch at index 0. expected 0, actual 5", RESUMED, "pad to 2 or more", "before the first call"),
    ("2 <= L['x'].size()[0]", ANY_FRAME, "pad to 2 or more", "mark_dynamic"),
    (
        "tensor 'self.buf' size mismatch at index 0. expected 2, actual 3",
        RESUMED,
        "mark_dynamic(self.buf, 0)",
        "goes from",
    ),
    ("tensor 'h' stride mismatch at index 0. expected 4, actual 1", RESUMED, "contiguous()", "before the call"),
    ("tensor 'x' stride mismatch at index 0. expected 4, actual 1", ANY_FRAME, "x.contiguous()", "graph break"),
    ("tensor 'h' rank mismatch. expected 2, actual 1", RESUMED, "the arguments that it comes from", "reshape before"),
    ("tensor 'h' dtype mismatch. expected Float, actual Double", RESUMED, "before the break", "before the call"),
    (
        "tensor 'self.w' dtype mismatch. expected Float, actual Double",
        ANY_FRAME,
        "before the first call",
        "before the call",
    ),
    ("tensor 'self.w' requires_grad mismatch. expected requires_grad=1", ANY_FRAME, "before the first call", "detach"),
    ("tensor 'h' requires_grad mismatch. expected requires_grad=1", RESUMED, "the arguments", "detach"),
    ("2 <= L['h'].size()[0] <= 19", RESUMED, "remove the graph break", "mark_dynamic"),
    ("L['n'] == 2", ANY_FRAME, "pass it as a tensor", "first call"),
    ("L['a'] == 2.5", ANY_FRAME, "pass it as a tensor", "first call"),
    ("L['a'] == (1+2j)", ANY_FRAME, "pass it as a tensor", "dynamic=True"),
    ("L['a'] > 2.0", ANY_FRAME, "torch.where", "a size"),
    ("4 <= L['n']", ANY_FRAME, "torch.where", "a size"),
    (
        "tensor 'p' size mismatch at index 0. expected 8, actual 9. Guard failed on a parameter, consider using "
        "torch._dynamo.config.force_parameter_static_shapes = False to allow dynamism on parameters.",
        ANY_FRAME,
        "force_parameter_static_shapes = False",
        "mark_dynamic",
    ),
    ("tensor 'self._buffers['b']' size mismatch at index 0. expected 8, actual 9", ANY_FRAME, "static", "mark_dynamic"),
    ("___check_obj_id(L['m'], 94), type=<enum 'a.Mode'>", ANY_FRAME, "each member", "create"),
    ("___check_metadata_139869233900544_c0/0", ANY_FRAME, "__metadata_guard__", "tensor if"),
    ("check_overlapping(overlapping=[L['x'], L['y']], non_overlapping=[])", ANY_FRAME, "clones", "mark"),
    ("not L['m']._forward_hooks", ANY_FRAME, "register and remove hooks", "length"),
    (
        "L['self'].config.scale == 2",
        ANY_FRAME,
        "set it once, before the first call",
        "pass it as a tensor if it varies",
    ),
    ("G['SCALE'] == 2", ANY_FRAME, "set it once, before the first call", "dynamic"),
    ("L['n'] == 2.5", RESUMED, "no .item()", "pass it"),
    ("L['self'].config.mode == 'fast'", ANY_FRAME, "before the first call", "tensor"),
    ("L['self'].config.use_cache == True", ANY_FRAME, "before the first call", "tensor"),
    ("L['mode'] == 'fast'", ANY_FRAME, "fine for a few", "tensor"),
    ("L['flag'] == True", ANY_FRAME, "fine for a few", "tensor"),
    ("G['MODE'] == 'fast'", ANY_FRAME, "before the first call", "tensor"),
    ("L['dtype'] == torch.float32", ANY_FRAME, "fine for a few", "tensor"),
    (
        "___check_obj_id(L['___stack0'], 94), type=<class 'builtin_function_or_method'>",
        RESUMED,
        "on a line that does not break the graph",
        "reuse it",
    ),
    ("___check_obj_id(L['f'], 94), type=<class 'builtin_function_or_method'>", RESUMED, "reuse it", "graph break"),
    ("L['bias'] is None", ANY_FRAME, "expect two compilations", "pass what varies"),
    ("L['self'].training == True", ANY_FRAME, "train() and eval()", "tensor"),
    ("len(L['xs']) == 2", ANY_FRAME, "the same length", "keyword"),
    ("len(L['self'].items) == 2", ANY_FRAME, "fill it before the first call", "torch.stack"),
    ("len(L['kw']) == 2", STARRED, "pass the same set in each call", "pad"),
    ("len(L['kw']) != 2", STARRED, "pass the same set in each call", "tensor"),
    ("not L['kw']", STARRED, "pass the same set in each call", "torch.stack"),
    ("len(L['args']) == 2", STARRED, "number of positional arguments", "pad"),
    ("len(L['d']) != 2", ANY_FRAME, "same keys", "tensor"),
    ("___dict_contains('z', L['d'])", ANY_FRAME, "same keys", "tensor"),
    ("KeyError on L['d']['a']", ANY_FRAME, "same keys", "tensor"),
    ("GLOBAL_STATE changed: grad_mode ", ANY_FRAME, "torch.no_grad()", "autocast"),
    ("GLOBAL_STATE changed: autocast(cpu)_enabled=True", ANY_FRAME, "torch.autocast", "no_grad"),
    ("GLOBAL_STATE changed: num_threads ", ANY_FRAME, "set_num_threads", "autocast"),
    ("___check_obj_id(L['f'], 14), type=<class 'function'>", ANY_FRAME, "create it once and reuse it", "tensor"),
    ("___check_obj_id(L['f'].__code__, 14), type=<class 'code'>", ANY_FRAME, "fine for a few", "compiles anew"),
    ("Duplicate tensor found where not expected! ", ANY_FRAME, "clone", "mark"),
]


@pytest.mark.parametrize(("guard", "frame", "must", "must_not"), TABLE)
def test_advice_is_for_one_cause(guard: str, frame: GuardedFrame, must: str, must_not: str) -> None:
    advice = explain(read(guard), frame).advice
    assert must in advice
    assert must_not not in advice


def test_every_cause_has_advice_for_every_origin() -> None:
    for cause in GuardCause:
        for origin in ValueOrigin:
            advice = advice_for_guard(cause, origin, "x", "0")
            assert bool(advice) == (cause not in (GuardCause.UNKNOWN, GuardCause.STATE)), (cause, origin)
            assert "{" not in advice


@pytest.mark.parametrize("cause", GuardCause)
def test_of_what_only_a_resume_function_takes_nothing_is_asked_that_a_caller_cannot_do(cause: GuardCause) -> None:
    advice = advice_for_guard(cause, ValueOrigin.INTERMEDIATE, "h", "0")
    assert "mark_dynamic(h" not in advice
    if cause in (GuardCause.SIZE, GuardCause.NUMBER, GuardCause.LENGTH):
        assert "pass it" not in advice


@pytest.mark.parametrize(
    ("guard", "frame", "origin"),
    [
        ("L['x'] == 2", ANY_FRAME, ValueOrigin.ARGUMENT),
        ("L['x'] == 2", RESUMED, ValueOrigin.INTERMEDIATE),
        ("L['self'].config.x == 2", RESUMED, ValueOrigin.ATTRIBUTE),
        ("G['x'] == 2", RESUMED, ValueOrigin.GLOBAL),
        ("L['kw'] == 2", STARRED, ValueOrigin.KEYWORD),
        ("L['args'] == 2", STARRED, ValueOrigin.POSITIONAL),
    ],
)
def test_where_a_value_comes_from(guard: str, frame: GuardedFrame, origin: ValueOrigin) -> None:
    assert origin_of(guard, explain(read(guard)).subject, frame) is origin
