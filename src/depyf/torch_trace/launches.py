"""Name the launch that a followed process belongs to: when the first process of a program began, and what it runs.

A directory that is dumped into again keeps the folders of processes of the launch before. The name is inherited by the
environment and kept in manifests, so that a reader knows which folders a later launch has replaced.
"""

from __future__ import annotations

import math
import os
import sys
import time
import zlib
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Set

from depyf.base.asynchronous import suppressed

VARIABLE = "DEPYF_DUMP_LAUNCH"

BETWEEN_RANKS = 30.0
"""Seconds within which all ranks of a program start, including the import of their compilers; and within which a rank
that is started by itself may begin after another one has ended."""


def new_launch() -> str:
    """Return the name of a launch whose first process this is: ``1764090000.125 9f1c03aa``."""
    program = "\0".join([os.getcwd(), *_command()])
    return f"{time.time():.3f} {zlib.crc32(program.encode('utf-8', 'surrogateescape')):08x}"


def current_launch() -> str:
    """Return the name of the launch of this process; empty if it is not followed."""
    return os.environ.get(VARIABLE, "")


def _command() -> List[str]:
    """Return the command of this process, also before ``sys.argv`` is set."""
    with suppressed(OSError):
        if not hasattr(sys, "orig_argv"):  # up to 3.9
            with open("/proc/self/cmdline", encoding="utf-8", errors="surrogateescape") as file:
                return file.read().split("\0")
    return list(getattr(sys, "orig_argv", getattr(sys, "argv", [])))


class Followed(NamedTuple):
    """What is known of a followed process: the name of its folder, its launch (empty: not known), its rank, and when
    it has last written, in seconds since the epoch.
    """

    folder: str
    launch: str
    rank: Optional[int]
    written: float


def of_replaced_launches(processes: Iterable[Followed]) -> Set[str]:
    """Return the folders of processes of launches that a later launch has replaced.

    All of their processes had written before the later launch began, and runs the same command, or has an equal rank.

    So these are all kept: the launchers on the machines of one program, and its ranks without a launcher, which run at
    the same time; and the programs of a script, one after the other, which are other commands. Of a process that was
    killed before it wrote a manifest only the time is known.
    """
    launches: Dict[str, List[Followed]] = {}
    for each in processes:
        launches.setdefault(each.launch or f"? {each.folder}", []).append(each)
    replaced = [
        one
        for one, of_one in launches.items()
        for other, of_other in launches.items()
        if _replaces(one, other, of_one, of_other)
    ]
    return {each.folder for one in replaced for each in launches[one]}


def _began(launch: str) -> float:
    """Return when a launch began, in seconds since the epoch; minus infinity if its name does not say it."""
    with suppressed(ValueError):
        seconds = float(launch.partition(" ")[0])
        return seconds if math.isfinite(seconds) else -math.inf
    return -math.inf


def _replaces(one: str, other: str, processes: Sequence[Followed], later: Sequence[Followed]) -> bool:
    """Return whether ``other`` began after the processes of ``one`` had ended, and runs the same."""
    ranks, later_ranks = ({each.rank for each in of if each.rank is not None} for of in (processes, later))
    apart = _began(other) - max(each.written for each in processes)
    # No name of a launch is known, or a rank is there twice: it is enough that one ended before the other began.
    if one.startswith("?") or ranks & later_ranks:
        return apart > 0
    # Else the same command; ranks without a launcher may start one after the other.
    same_command = one.partition(" ")[2] == other.partition(" ")[2]
    return same_command and apart > (BETWEEN_RANKS if ranks and later_ranks else 0)
