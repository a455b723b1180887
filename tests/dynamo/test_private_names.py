"""What depyf relies on in PyTorch's private parts is one table, and the installed PyTorch has what the table says."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from depyf.dynamo.hooks import torch_names  # noqa: E402


def test_modules_of_c_that_cannot_be_imported_are_found() -> None:
    """Up to PyTorch 2.6 those of Dynamo are attributes of ``torch._C._dynamo``, which is no package."""
    pytest.importorskip("torch._dynamo")
    assert torch_names.find("torch._C._dynamo.eval_frame", "set_eval_frame") is not None
    assert torch_names.find("torch._C._dynamo.eval_frame", "no_such_name") is None
    assert torch_names.find("torch._C._dynamo.no_such_module", "set_eval_frame") is None
