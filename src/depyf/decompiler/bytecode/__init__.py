"""Facts about CPython bytecode: opcode tables, instructions, exception tables, lines, ``.pyc`` files. No semantics.

Only this package and ``normal`` check the version of Python. Imports ``base/`` only. Start reading at
``instructions.py``.
"""
