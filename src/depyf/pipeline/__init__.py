"""The pipeline: a code object in, verified source out.

``attempts`` writes a code object in one form and compares it, ``settling`` deletes temporaries where they would live
too long, ``salvage`` leaves out what fails of a module or class. May import every stage of the decompiler. Start
reading at ``decompiling.py``.
"""

from depyf.pipeline.decompiling import decompile_code as decompile_code
