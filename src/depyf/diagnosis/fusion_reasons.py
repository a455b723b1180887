"""Why Inductor has not fused two parts of a graph, in words: one row for each reason that PyTorch 2.13 gives.

A row has the beginning of PyTorch's text, or the whole of it, words of ours, and what to do, where that helps.
``{first}`` and ``{second}`` are the parts in the order in which they run. Empty words: the pair is not worth a
sentence, as nothing is lost. An unknown reason is quoted. Some rows are for texts of ``depyf.dynamo.capture.fusions``.

A module of its own: a table.
"""

from __future__ import annotations

from typing import Optional, Tuple

_TEMPLATE = (
    'with mode="max-autotune" a matrix product or convolution may become a template of Triton, which takes operations '
    "on its result into it, where that is faster"
)
_FOREACH = "the operations on a list of tensors (torch._foreach) are one kernel"
_PROLOGUE = "operations before a template of Triton are computed in it only if"
_SIZES = "Triton's kernels have one size for all that they compute"
_LOOPS = "Triton's kernels have one order of their dimensions for all that they compute"
_REGISTERS = "it was tried: registers spilled into memory in"

_ROWS: Tuple[Tuple[str, str, str], ...] = (
    # What the scheduler does not try: calls of libraries, of operators of the program, of its kernels for Triton.
    ("not fusable: the first", "{first} is called as it is: Inductor does not look into it", _TEMPLATE),
    ("not fusable: the second", "{second} is called as it is: Inductor does not look into it", ""),
    # Inductor's choices.
    ("no shared data due to indexing mismatch", "both read the same tensor, in another order", ""),
    ("no shared data", "", ""),
    (
        "exceeds max fusion",
        "together they have more operations than a kernel may have (torch._inductor.config.max_fusion_size)",
        "a larger max_fusion_size may make it faster, and compiling slower",
    ),
    ("Fusion will increase peak memory", "fused, they would need more memory at the peak than they share data", ""),
    (
        "fusion_prevent_too_many_reads_and_writes",
        "fused, they would read and write more tensors than torch._inductor.config.max_fusion_unique_io_buffers",
        "max_fusion_unique_io_buffers is None by default",
    ),
    (
        "score_fusion_memory_threshold",
        "they share less data than torch._inductor.config.score_fusion_memory_threshold (in bytes)",
        "",
    ),
    (
        "Nodes are too far away",
        "they are far apart in the graph: fused, tensors between them would be kept longer in memory",
        "",
    ),
    # The scheduler.
    ("will create cycle", "something between them needs the result of {first} and is needed by {second}", ""),
    ("intermediate nodes between", "{second} needs the result of something that runs after {first}", ""),
    (
        "memory deps did not match",
        "{second} needs more of {first} done than what is computed at the same time: it reads the result through a "
        "view, slice, broadcast or reduction, or is ordered after {first}, as where it writes what {first} reads",
        "",
    ),
    ("node1 must go before node2", "", ""),
    ("node1 is nop", "", ""),
    ("node2 is extern or nop", "{second} is called as it is, or computes nothing", ""),
    ("node1 is extern but not a triton kernel", "{first} is called as it is", _TEMPLATE),
    ("node1's triton kernel doesn't support", "{first} is a Triton kernel of yours, and can't take it", ""),
    ("node1 is extern but node2", "{first} is a Triton kernel of yours, which takes only a pointwise operation", ""),
    ("epilogue reads from buffers other", "{first} is a Triton kernel of yours, {second} reads other tensors too", ""),
    ("node1 and node2 uses different buf layouts", "{first} is a Triton kernel of yours with another layout", ""),
    ("grouped node must not be fused", "PyTorch keeps a group of operations together and apart from others", ""),
    ("fusion for buffer explicit disabled", "a pass of PyTorch has forbidden to fuse one of the two parts", ""),
    ("device mismatch", "they run on different devices", "tensors on one device make the copy between them needless"),
    # Lists of tensors.
    ("foreach do not have same length", f"{_FOREACH}, and the lists are of different lengths", ""),
    ("candidate producer is a reduction, foreach", f"{_FOREACH}, which takes no reduction ({{first}})", ""),
    ("candidate consumer is a reduction, foreach", f"{_FOREACH}, which takes no reduction ({{second}})", ""),
    ("candidate producer is not dep of any foreach", f"{_FOREACH}, and no operation of the list reads {{first}}", ""),
    ("candidate consumer has no dep in any foreach", f"{_FOREACH}, and {{second}} reads no result of the list", ""),
    # What was tried on the GPU.
    ("register spilling of the first kernel", f"{_REGISTERS} {{first}}", ""),
    ("register spilling of the second kernel", f"{_REGISTERS} {{second}}", ""),
    ("register spilling of the fused kernel", f"{_REGISTERS} both together", ""),
    # Templates of Triton.
    ("prologue fusion turned off", "computing operations before a template in it is off (config.prologue_fusion)", ""),
    ("prologue fusion only supported for pointwise nodes", f"{_PROLOGUE} they are pointwise: {{first}} is not", ""),
    ("template has no allowed prologue inputs", f"{_PROLOGUE} the template allows it: this one allows none", ""),
    ("prologue fusion not implemented for kernel for these inputs", f"{_PROLOGUE} the template allows that input", ""),
    ("template prologue can only fuse functional pointwise", f"{_PROLOGUE} nothing is changed in place", ""),
    ("template prologue can only fuse nodes with a single use", f"{_PROLOGUE} nothing else uses {{first}}", ""),
    ("prologue fusion will not increase amount of bytes read", f"{_PROLOGUE} less is read so: here it is more", ""),
    ("prologue fusion will not increase attempt to fuse in padding", f"{_PROLOGUE} they are more than padding", ""),
    ("prologue fusion that must be upcast to fp32", f"{_PROLOGUE} they can be computed in the template's type", ""),
    (
        "template epilogue not satisfied",
        "a template of Triton takes no reduction and no change in place, and none at all without epilogue_fusion",
        "",
    ),
    ("multi-output template epilogue requires ComputedBuffer", "the template has several results", ""),
    # Sizes of Triton's kernels.
    ("Split scan cannot fuse with reductions", "a scan in several parts (cumsum) is not fused with a reduction", ""),
    ("numel/rnumel mismatch (reduce)", f"{_SIZES}: the two reductions have different sizes {{more}}", ""),
    ("numel/rnumel mismatch (non-reduce)", f"{_SIZES}: these have different sizes {{more}}", ""),
    ("numel/rnumel mismatch prologue mismatch", f"{_SIZES}: one before the template has another size {{more}}", ""),
    ("nodes numel/rnumel incompatibility", f"{_SIZES}: {{first}} has another size than the reduction", ""),
    ("nodes numel incompatibility", f"{_SIZES}: these have different sizes", ""),
    ("tiling mismatch", f"{_LOOPS}: these have different ones {{more}}", ""),
    ("invalid tiling for reduction", f"{_LOOPS}: the order of {{first}} does not suit the reduction", ""),
    ("invalid loop order and tiling for native matmul", f"{_LOOPS}: these don't suit the matrix product", ""),
)  # fmt: skip

_OF_CPP = "C++ backend: "


def in_words(reason: str, first: str, second: str, *, device: str) -> Optional[Tuple[str, str]]:
    """Return why two parts were not fused, and what to do (empty if nothing); None if nothing is lost by it.

    ``reason`` is PyTorch's text, ``first`` and ``second`` are names of the parts, ``device`` is ``cpu`` or ``cuda``."""
    if reason.startswith(_OF_CPP):
        # ``C++ backend: 64 x 128 | 32; 512``: the loops of both, and after the bar of a reduction.
        one, other = map(_loops, reason[len(_OF_CPP) :].split(";"))
        return f"the C++ backend has refused: the first is {one}, the second {other}", ""
    for text, words, advice in _ROWS:
        if reason.startswith(text):
            told = words.format(first=first, second=second, more=reason[len(text) :].strip())
            # Templates are for products and convolutions, called as in ``extern_kernels.mm``, on a GPU.
            has_template = device != "cpu" and first.rpartition(".")[2].endswith(("mm", "convolution"))
            helps = advice is not _TEMPLATE or has_template
            return (told, advice if helps else "") if words else None
    return f"PyTorch says: {reason}", ""


def _loops(sizes: str) -> str:
    loops, _, reduction = (each.strip() for each in sizes.partition("|"))
    around = f"a loop over {loops}" if loops else "no loop"
    if not reduction:
        return around
    return f"a reduction of {reduction}" + (f" in {around}" if loops else "")
