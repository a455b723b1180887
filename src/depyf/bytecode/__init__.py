"""Facts about CPython bytecode: opcode tables, instructions, exception tables, lines, ``.pyc`` files. No semantics.

Only this package and ``normal`` check the version of Python. Imports nothing of depyf but the modules at the
bottom (``asynchronous``, ``without_warnings`` and the like). Start reading at ``instructions.py``.
"""
