"""The module that Python imports at startup in processes started under ``depyf run --follow``.

It starts the dump that the environment asks for, and then loads the ``sitecustomize`` that it hides.
"""

import importlib.machinery
import importlib.util
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _begin() -> None:
    try:
        from depyf.running.by_environment import begin
    except ImportError:  # another Python, without depyf
        return
    begin()


def _be_the_next() -> None:
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _FOLDER]
    sys.path_importer_cache.pop(_FOLDER, None)
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_begin()
_be_the_next()
