"""Facts about CPython bytecode: opcode tables, instructions, exception tables. No meaning, no version logic above it."""
