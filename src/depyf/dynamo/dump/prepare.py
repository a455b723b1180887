"""``prepare_debug``: everything compiled inside is dumped into a directory."""

from __future__ import annotations

import os
from typing import Optional, Union

from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.capture.hub import capture
from depyf.dynamo.capture.session import Session
from depyf.dynamo.dump.manifest import run_of
from depyf.dynamo.dump.session_files import SessionFiles
from depyf.dynamo.hooks import torch_names
from depyf.dynamo.hooks.hooked_context import HookedContext
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.store.directory import DumpDirectory, absolute
from depyf.dynamo.store.names import EVERYTHING, chosen_files
from depyf.report.render.hidden_values import chosen_values
from depyf.report.render.inline import summary_html
from depyf.report.render.summary import summary_lines

keep_builtins(globals())

capture.writer = SessionFiles()


class PrepareDebug(HookedContext[Session]):
    """The context manager that ``prepare_debug`` returns.

    It may be entered and left in different functions and entered again; each time is a session of its own.
    ``session`` is the current or last one, and what Jupyter shows where this is the value of a cell.
    """

    _name = "prepare_debug()"
    _each_anew = True
    _reports_failures = True

    def __init__(
        self,
        dump_src_dir: Union[str, os.PathLike[str]],
        *,
        clean_wild_fx_code: bool = True,
        log_bytecode: bool = False,
        force_recompile: bool = False,
        stepping: bool = True,
        allow_shared: bool = False,
        values: Optional[str] = None,
        dump: Optional[str] = None,
    ) -> None:
        torch_names.require_torch("prepare_debug")
        super().__init__()
        dump_src_dir = os.fsdecode(dump_src_dir)
        if not dump_src_dir:
            raise ValueError("depyf.prepare_debug needs the name of a directory to dump into ('.' is the current one)")
        if "\0" in dump_src_dir:
            raise ValueError("the name of the directory that depyf.prepare_debug is to dump into has a NUL in it")
        self.dump_src_dir = absolute(dump_src_dir)
        self.clean_wild_fx_code = clean_wild_fx_code
        self.log_bytecode = log_bytecode
        self.force_recompile = force_recompile
        self.stepping = stepping
        self.allow_shared = allow_shared
        self.values = chosen_values(values)
        self.everything = chosen_files(dump) == EVERYTHING
        self.session: Optional[Session] = None

    def _entry(self) -> Session:
        return Session(
            DumpDirectory.at(self.dump_src_dir, allow_shared=self.allow_shared),
            clean_wild_fx_code=self.clean_wild_fx_code,
            log_bytecode=self.log_bytecode,
            force_recompile=self.force_recompile,
            stepping=self.stepping,
            values=self.values,
            everything=self.everything,
        )

    def _start(self, entry: Session) -> None:
        self.session = entry
        capture.start(entry)

    def _stop(self, entry: Session) -> None:
        capture.stop(entry)

    def _drop(self, entry: Session) -> None:
        capture.drop(entry)

    def __str__(self) -> str:
        """Return what was compiled so far in the current or last session, in a few lines."""
        head = f"depyf.prepare_debug({self.dump_src_dir!r})"
        if self.session is None:
            return f"{head}: it has not begun: enter it (with depyf.prepare_debug(...): ...)"
        run = safely("showing a session")(run_of)(self.session)
        lines = [] if run is None else summary_lines(run)
        return "\n".join([f"{head}: {'open' if self._open else 'ended'}", *(f"  {line}" for line in lines)])

    __repr__ = __str__

    @safely("showing a session in a notebook")
    def _repr_html_(self) -> Optional[str]:
        """Return Jupyter's view of the session: what was compiled so far, and the source with the outcome of lines."""
        return None if self.session is None else summary_html(run_of(self.session))


def prepare_debug(
    dump_src_dir: Union[str, os.PathLike[str]],
    clean_wild_fx_code: bool = True,  # noqa: FBT001, FBT002 - the order of depyf 0.20
    log_bytecode: bool = False,  # noqa: FBT001, FBT002
    *,
    force_recompile: bool = False,
    stepping: bool = True,
    allow_shared: bool = False,
    values: Optional[str] = None,
    dump: Optional[str] = None,
) -> PrepareDebug:
    """Return a context manager that dumps everything that ``torch.compile`` compiles inside it into ``dump_src_dir``.

    The directory is created if it does not exist; other files in it are not touched. What the program computes does not
    change.

    ``clean_wild_fx_code``: if false, graph modules that belong to no stage of a compilation are dumped too.
    ``log_bytecode``: store the code objects, with dill, beside each file of transformed code. ``force_recompile``: take
    no compiled graphs from PyTorch's caches (on disk, remote) inside, so that each is compiled again; what this process
    has compiled stays compiled until ``torch._dynamo.reset()``. ``stepping``: if false, compiled code stays where
    PyTorch has put it; line numbers in tracebacks, coverage and logs are those without depyf, and a breakpoint in a
    file of the dump never stops. ``allow_shared``: trust a directory that another user owns or may write. Without it
    (and without ``DEPYF_ALLOW_SHARED=1`` in the environment) such a directory gets no dump, because code is run from
    it. ``values``: with ``"types"`` the files have types in place of the values that the program held, with ``"all"``
    they quote values; None is ``DEPYF_VALUES`` of the environment, without that ``"types"`` where ``CI`` is set, and
    ``"all"`` elsewhere. SECURITY.md says what is hidden. ``dump``: with ``"all"`` each state of each graph has its own
    file, beside the others, as in depyf 0.20; with ``"read"`` graphs between two stages, wrappers and passes are in the
    folder ``stages``, and a graph there that equals another shares that file. None is ``DEPYF_FILES`` of the
    environment, and ``"read"`` without that.

    All threads of the process are recorded. Of nested sessions each is complete; code runs from the files of the
    innermost. A forked child continues to dump into the directory and writes its own files when it ends; a spawned
    process needs a ``prepare_debug`` of its own. Several processes may dump into one directory: rank 0 has the plain
    names, rank 1 ``<name>.rank_1.py``, and other processes ``<name>.process_<n>.py`` where a name is taken.

    Raises ``ImportError`` without PyTorch, and ``ValueError`` for an empty path, one with NUL, and other ``values``
    and ``dump``. A directory that can't be written is a warning.
    """
    return PrepareDebug(
        dump_src_dir,
        clean_wild_fx_code=clean_wild_fx_code,
        log_bytecode=log_bytecode,
        force_recompile=force_recompile,
        stepping=stepping,
        allow_shared=allow_shared,
        values=values,
        dump=dump,
    )
