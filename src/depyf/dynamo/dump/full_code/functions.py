"""Write one story as Python: transformed functions, the user's own function, and a function that chooses among them.

    def __transformed_code_0_for_f(x): ...      # each cache entry
    def f(x): ...                               # the user's own function
    def transformed_f(x):                       # the dispatcher: what Dynamo does on a call
        ___locals = {'x': x}
        ___globals = ___live.global_scope() or globals()
        if __guard_0_for_f(___locals, ___globals):
            return __transformed_code_0_for_f(x)
        return f(x)

With free variables all of this is the body of ``closure_of_f(a=..., b=...)``, which returns the dispatcher.
"""

from __future__ import annotations

from typing import Callable, Mapping, Optional, Sequence, Tuple

from depyf.base.quick_dataclass import dataclass, replace
from depyf.dynamo.dump.full_code.original import Original
from depyf.dynamo.dump.full_code.story import Entry, Story
from depyf.dynamo.dump.full_code.text import (
    Signature,
    as_definition,
    commented,
    indented,
    is_name,
    why_it_does_not_compile,
    with_profiler_lines_marked,
)
from depyf.dynamo.guards.entry_guards import EntryGuards

Problem = Callable[[str, str, Sequence[str]], object]
"""Returns why a source does not compile inside a function of that name with these free variables, None if it does."""


@dataclass(frozen=True)
class StoryText:
    """Python that defines everything of one story. ``dispatcher`` is the function that chooses; ``guards`` are the
    functions that ``text`` calls, one for each cache entry."""

    text: str
    dispatcher: str
    guards: Tuple[str, ...] = ()


def story_text(
    story: Story, original: Original, guards: Mapping[str, EntryGuards], problem: Optional[Problem] = None
) -> StoryText:
    """Return the text of ``story``; ``guards`` holds the guards of its entries by the entries' names.

    Source that ``problem`` refuses (nothing by default) becomes a comment.
    """
    problem = problem or no_problem
    stem, signature = story.stem, Signature.of(story.code)
    free = tuple(name for name in story.code.co_freevars if is_name(name))
    factory = f"closure_of_{story.called_as or stem}"
    pieces = [_transformed(entry, signature, factory, free, problem) for entry in story.entries]
    original, original_text = _original(original, signature, factory, free, story, problem)
    # Transformed code calls a resume function by its global name: that is the dispatcher, or, with closure cells, the
    # function that makes the dispatcher from the cells (``_in_factory``).
    dispatcher = story.called_as if story.called_as and not story.takes_cells else f"transformed_{stem}"
    pieces += [commented(f"A call may run as plain Python. {text}") for text in story.fallbacks]
    pieces += [original_text, _dispatcher(dispatcher, story, original, signature, guards, free)]
    text = "\n\n\n".join(pieces)
    # Guards stay outside: they get the free variables in ``___locals``, and are the same for each closure.
    if free or story.takes_cells:
        text = _in_factory(text, factory, dispatcher, free, story)
    texts = tuple(guards[entry.name].source().rstrip() for entry in story.entries if entry.name in guards)
    return StoryText(text, dispatcher, texts)


def original_name(story: Story) -> str:
    """Return the original function's name in the file: its own name if it is valid and unused."""
    if story.called_as is not None:
        return f"original_{story.called_as}"
    return story.code.co_name if is_name(story.code.co_name) else f"original_{story.stem}"


def _transformed(entry: Entry, signature: Signature, factory: str, free: Sequence[str], problem_of: Problem) -> str:
    """Return the function of one cache entry; without source, its listing and a function that runs the bytecode."""
    where = f"compile id {entry.compile_id}" if entry.compile_id else "compile id unknown"
    verdict = f"; {entry.verdict}" if entry.verdict else ""
    notes = [f"Transformed code, {where}{verdict}" + (f": {entry.reason}" if entry.reason else "")]
    notes += entry.notes
    if entry.manager is None:
        notes.append("Its cache entry is gone (torch._dynamo.reset, or an object that it depended on died).")
    if entry.source is not None:
        source = as_definition(entry.source.strip("\n"), entry.name)
        problem = problem_of(source, factory, free)
        if problem is None:
            return "\n".join([commented("\n".join(notes)), with_profiler_lines_marked(source)])
        notes.append(f"The source does not compile here ({problem}):\n{entry.source}")
    listing = commented(entry.listing)
    closed = "{" + ", ".join(f"{name!r}: {name}" for name in free) + "}"
    stub = (
        f"def {entry.name}({signature.parameters({})}):\n"
        f'    """Dynamo\'s bytecode, for which there is no source; see above."""\n'
        f"    return ___run_bytecode(___live, {entry.name!r}, {_call_record(signature)}, {closed})"
    )
    return "\n".join([commented("\n".join(notes)), listing, stub])


def _call_record(signature: Signature) -> str:
    """Return the arguments of a call as a tuple and a dict, as source."""
    star = signature.positional + signature.keyword_only
    positional = [f"{name}," for name in signature.shown[: signature.positional]]
    if signature.has_varargs:
        positional.append(f"*{signature.shown[star]},")
    keywords = [f"{name!r}: {name}" for name in signature.shown[signature.positional : star]]
    if signature.has_varkeywords:
        keywords.append(f"**{signature.shown[-1]}")
    return f"({' '.join(positional)}), {{{', '.join(keywords)}}}"


def _original(
    original: Original, signature: Signature, factory: str, free: Sequence[str], story: Story, problem_of: Problem
) -> Tuple[Original, str]:
    """Return the user's own function as text, or a stub with the reason why there is none."""
    problem = None if original.source is None else problem_of(original.source, factory, free)
    if original.source is not None and problem is None:
        what = "Resume function of Dynamo's" if story.called_as else "The function itself"
        text = f"{commented(f'{what}, {original.origin}')}\n{original.source}"
        if original.name not in (*signature.shown, *free):
            return original, text
        # def f(f): ...  A parameter hides the function in the dispatcher, which has to call it.
        alias = f"original_{story.stem}"
        return replace(original, name=alias), f"{text}\n\n\n{alias} = {original.name}"
    why = original.origin if original.source is None else f"its source does not compile here ({problem})"
    shown = "" if original.source is None else commented(original.source) + "\n"
    stub = (
        f"def {original.name}({signature.parameters(original.defaults)}):\n"
        f'    """The function itself."""\n'
        f"    raise NotImplementedError({why!r})"
    )
    return original, f"{shown}{stub}"


def _dispatcher(
    name: str,
    story: Story,
    original: Original,
    signature: Signature,
    guards: Mapping[str, EntryGuards],
    free: Sequence[str],
) -> str:
    """Return the function that does what Dynamo does on a call."""
    arguments = signature.arguments()
    otherwise = "as plain Python, see above" if story.fallbacks else "which Dynamo would compile"
    lines = [
        f"def {name}({signature.parameters(original.defaults)}):",
        f'    """The first transformed code whose guards hold; else {original.name}, {otherwise}."""',
        f"    ___locals = {signature.frame_locals(free)}",
        "    ___globals = ___live.global_scope() or globals()",
    ]
    for entry in story.entries:
        guard = guards.get(entry.name)
        if guard is not None:
            lines.append(f"    if {guard.name}(___locals, ___globals):")
            lines.append(f"        return {entry.name}({arguments})")
    lines.append(f"    return {original.name}({arguments})")
    return "\n".join(lines)


def no_problem(source: str, factory: str, free: Sequence[str]) -> object:
    """Return None: what does not compile makes the whole file fail, and is looked for then."""


def problem_in_place(source: str, factory: str, free: Sequence[str]) -> object:
    """Return why ``source`` does not compile inside a function with the free variables; None if it does."""
    if not free:
        return why_it_does_not_compile(source)
    return why_it_does_not_compile(f"def {factory}({', '.join(free)}):\n{indented(source)}")


def _in_factory(text: str, factory: str, dispatcher: str, free: Sequence[str], story: Story) -> str:
    """Return ``text`` as the body of a function whose parameters are the free variables."""
    closed = ", ".join(free) or "nothing"
    parameters = ", ".join(f"{name}=___placeholder({'closure variable ' + name!r})" for name in free)
    lines = [
        f"def {factory}({parameters}):",
        f'    """{dispatcher} with the variables that it closes over ({closed}) as arguments."""',
        "",
        indented(text),
        "",
        f"    return {dispatcher}",
    ]
    blocks = ["\n".join(lines)]
    if story.takes_cells:
        blocks.append(
            f"def {story.called_as}(___cells):\n"
            f'    """The resume function for these closure cells (Dynamo shares the cells; here their contents are'
            f' copied)."""\n'
            f"    return {factory}(*___contents(___cells))"
        )
    else:
        blocks.append(f"{dispatcher} = {factory}()")
    return "\n\n\n".join(blocks)
