"""Shared fixtures; tests that need PyTorch are skipped where it is not installed."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections import Counter
from typing import Iterator, List

import pytest

# Tests read values in dumps; where ``CI`` is set, dumps have types in their place (tests/dynamo/dump/test_values.py).
os.environ["DEPYF_VALUES"] = "all"
# Without bytecode in its cache each program that a test starts compiles all modules of depyf again, for three seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# A pool of compile workers costs each program that starts one more than the kernels of a test take to compile.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")


def pytest_collection_modifyitems(config: pytest.Config, items: List[pytest.Item]) -> None:
    share = os.environ.get("DEPYF_TESTS_SHARE")
    if share:
        part, parts = map(int, share.split("/"))
        left = in_other_shares(items, part, parts)
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in {*left}]
    if importlib.util.find_spec("torch") is None:
        for item in items:
            if item.get_closest_marker("torch"):
                item.add_marker(pytest.mark.skip(reason="PyTorch is not installed"))


def in_other_shares(items: List[pytest.Item], part: int, parts: int) -> List[pytest.Item]:
    """The tests marked ``shared`` that are not in share ``part`` (from 0) of ``parts``. A share has every ``parts``-th
    test of each file, so that all shares together have all of them (``tools/check/check_pythons.sh``)."""
    seen: Counter[str] = Counter()
    left = []
    for item in items:
        if item.get_closest_marker("shared"):
            file = item.nodeid.partition("::")[0]
            if seen[file] % parts != part:
                left.append(item)
            seen[file] += 1
    return left


@pytest.fixture(scope="session", autouse=True)
def bugs_are_let_through() -> Iterator[None]:
    """Errors of depyf's own in one attempt at a decompilation fail the test, where a user gets the next attempt."""
    from depyf.base.own_bugs import let_through

    with let_through():
        yield


@pytest.fixture
def fresh_dynamo() -> Iterator[None]:
    """Nothing that was compiled before the test, and nothing of it behind it."""
    import torch

    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture(autouse=True)
def no_session_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a session open, and end the session: the tests after it would be in it, too."""
    yield
    hub = sys.modules.get("depyf.dynamo.capture.hub")
    left = None if hub is None else hub.capture.current()
    if hub is not None and left is not None:
        hub.capture.drop(left)
        pytest.fail(f"{request.node.nodeid} has left a session open: {left.directory.path}")
