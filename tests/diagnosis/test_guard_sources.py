"""Sources of guarded values are read as the user writes them."""

from __future__ import annotations

import pytest

from depyf.diagnosis.guard_sources import as_written, holder_of, module_path


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("L['fn'].0.up", "fn.0.up"),
        ("L['fn']._modules['0'].up", "fn.0.up"),  # 2.7
        ("getattr(getattr(L['fn'], '0'), '12').up", "fn.0.12.up"),  # 2.2
        ("L['self'].layers[3].attn", "self.layers.3.attn"),
        ("L['model'].__dict__['_modules']['down']._modules['0']", "model.down.0"),  # for block in self.down
        ("", ""),
    ],
)
def test_the_path_of_a_module_is_the_same_whatever_pytorch_wrote_it(source: str, path: str) -> None:
    assert module_path(source) == path


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("G['__import_torch_dot_nn_dot_modules_dot_sparse'].F", "torch.nn.modules.sparse.F"),
        ("G['__builtins_dict___1']['print']", "print"),
        ("G['__builtins_dict__']['len']", "len"),
        ("L['self']._modules['up'].F", "self.up.F"),
        ("L['self'].__dict__['_modules']['up'].F", "self.up.F"),
        ("L['self'].__dict__['_hooks']['up']", "self.__dict__['_hooks']['up']"),
    ],
)
def test_names_that_dynamo_makes_up_are_not_shown(source: str, written: str) -> None:
    assert as_written(source) == written


def test_a_source_is_an_attribute_or_an_item_of_a_holder() -> None:
    assert holder_of("L['d']['k']") == ("L['d']", "k")
    assert holder_of("L['self'].inner.__dict__['factor']") == ("L['self'].inner", "factor")
    assert holder_of("L['xs'][0].y") == ("L['xs'][0]", "y")
    assert holder_of("len(L['xs'])") == holder_of("not Python") == ("", "")
