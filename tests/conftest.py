"""Shared fixtures; tests that need PyTorch are skipped where it is not installed."""

from __future__ import annotations

import importlib.util
from typing import Iterator, List

import pytest


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    if importlib.util.find_spec("torch") is None:
        for item in items:
            if item.get_closest_marker("torch"):
                item.add_marker(pytest.mark.skip(reason="PyTorch is not installed"))


@pytest.fixture(scope="session", autouse=True)
def bugs_are_let_through() -> Iterator[None]:
    """Errors of depyf's own in one attempt at a decompilation fail the test, where a user gets the next attempt."""
    from depyf.own_bugs import let_through

    with let_through():
        yield


@pytest.fixture
def fresh_dynamo() -> Iterator[None]:
    """Nothing that was compiled before the test, and nothing of it behind it."""
    import torch

    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
