"""Facts about CPython bytecode: opcode tables, instructions, exception tables; no meaning."""
