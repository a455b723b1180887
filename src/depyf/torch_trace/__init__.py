"""torch's structured trace as facts: what a record says, whichever way it came. Nothing here imports ``torch``."""
