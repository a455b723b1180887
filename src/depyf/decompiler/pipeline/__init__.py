"""The pipeline: a code object in, verified source out.

``attempts`` writes a code object in one form and compares it, ``settling`` deletes temporaries where they would live
too long, ``salvage`` omits the parts of a module or class that fail. May import every stage of the decompiler. Start
reading at ``decompiling.py``.
"""

from depyf.decompiler.pipeline.decompiling import decompile_code as decompile_code
