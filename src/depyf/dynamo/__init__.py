"""Everything that touches torch: capture, session, dump directory, graphs, kernels, guards, stepping.

Importing this package does not import torch; its hooks do, when they are installed.
"""
