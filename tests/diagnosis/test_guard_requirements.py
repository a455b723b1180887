"""What guards require, in words."""

from __future__ import annotations

import pytest

from depyf.diagnosis.guard_requirements import required

_KEYS = "DispatchKeySet(CUDA, BackendSelect, ADInplaceOrView, AutogradCUDA)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f"check_tensor(L['x'], Tensor, {_KEYS}, torch.float32, device=0, requires_grad=False, size=[4, 8], "
            "stride=[8, 1])",
            "float32[4, 8] on CUDA",
        ),
        (
            f"check_tensor(L['x'], Parameter, {_KEYS}, torch.int64, device=0, requires_grad=True, size=[None, 8], "
            "stride=[8, 1])",
            "Parameter int64[any, 8] on CUDA, requires grad",
        ),
        (
            f"check_tensor(L['x'], Tensor, {_KEYS}, torch.float32, device=0, requires_grad=False, size=[4, 8], "
            "stride=[1, 4])",
            "float32[4, 8] with strides [1, 4] on CUDA",
        ),
        (
            f"check_tensor(L['x'], Tensor, {_KEYS}, torch.float32, device=0, requires_grad=False, size=[1, 8], "
            "stride=[99, 1])",
            "float32[1, 8] on CUDA",
        ),
        ("L['factor'] == 0.5", "0.5"),
        ("L['how'] == 'none'", "'none'"),
        ("L['x'] is None", "None"),
        ("L['x'] is not None", "not None"),
        ("not L['parts']", "empty"),
        ("len(L['parts']) == 1", "1 item"),
        ("len(L['parts']) == 3", "3 items"),
        ("___check_type_id(L['x'], 94), type=<class '__main__.Scaled'>", "of class __main__.Scaled"),
        ("___check_obj_id(G['torch'], 94), type=<class 'module'>", "the same module"),
        ("___check_obj_id(L['f'].__code__, 94), type=<class 'code'>", "the same function"),
        ("___dict_contains('a', L['d'])", "has 'a'"),
        ("not ___dict_contains('a', L['d'])", "lacks 'a'"),
        ("not hasattr(L['x'], 'scale')", "lacks the attribute scale"),
        ("list(dict.keys(L['d']))[2] == 'b'", "key 2 is 'b'"),
        ("2 <= L['x'].size()[0]", "2 <= x.size()[0]"),
        ("L['x'] is L['y']", "the same object as y"),
        ("L['x'] is not L['y']", "another object than y"),
        ("not math.isnan(L['x'])", "not nan"),
        ("hasattr(L['x'], '_dynamo_dynamic_indices') == False", "no marked dimension"),
        ("check_no_aliasing(L['x'], L['y'])", "no tensor twice"),
        ("torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None", "no saved-tensors hooks"),
        ("some text of no known form (", ""),
    ],
)
def test_what_a_guard_requires_is_said_in_words(text: str, words: str) -> None:
    assert required(text) == words
