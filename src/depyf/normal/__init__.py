"""One small operation set for all Pythons: what bytecode means, without how a version spells it."""
