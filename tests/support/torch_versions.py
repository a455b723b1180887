"""Marks for tests of what an older PyTorch can't do."""

from __future__ import annotations

import pytest

from depyf.dynamo import compat

needs_stances = pytest.mark.skipif(not compat.has_stances(), reason="PyTorch before 2.6")
