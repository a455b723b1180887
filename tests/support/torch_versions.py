"""Marks for tests of features that an older PyTorch lacks."""

from __future__ import annotations

import pytest

from depyf.dynamo.hooks import frame_evaluation, structured_trace_listener, torch_names
from depyf.dynamo.hooks.private_names import EVENT_SENDERS

needs_stances = pytest.mark.skipif(not frame_evaluation.has_stances(), reason="PyTorch before 2.6")

IS_OLD = not frame_evaluation.reports_runs()
"""Whether this is one of the versions that may lack what newer ones have; those may not (tests are strict there)."""

LOG_NAMES_LINES = structured_trace_listener.reports(EVENT_SENDERS["dynamo_graph_break_reason"])
"""Up to PyTorch 2.5 the log lacks some graph breaks, has no lines of others, and no entries of recompilations."""

needs_branches_traced_once = pytest.mark.skipif(
    torch_names.find("torch._higher_order_ops.cond", "create_fw_bw_graph_branches") is not None,
    reason="this PyTorch traces the branches of torch.cond anew in each call: no file can hold what runs",
)

REPORTS_COMPILE_IDS = hasattr(torch_names.find("torch._C._dynamo.eval_frame", "_CacheEntry"), "compile_id")
"""Whether cache entries say which compilation made them (2.5 and later)."""

HAS_GUARD_TREES = any(
    torch_names.find("torch._dynamo.guards", name) is not None for name in ("GuardManager", "GuardManagerWrapper")
)
"""Whether guards are a tree of C++ objects (2.4 and later), and not one Python function."""

needs_guard_trees = pytest.mark.skipif(
    not HAS_GUARD_TREES, reason="PyTorch before 2.4 has one condition for all tensors, and one for the whole state"
)

BACKWARD_HAS_MODULES = torch_names.PrivateName(
    "torch._functorch._aot_autograd.utils", "fwd_nn_module_stack", "", in_text=True
).resolves()
"""Whether the nodes of a backward graph have the modules of their forward (2.2 and 2.4 give them none)."""
