"""What each operation does to the symbolic stack and to the statements, by topic; ``table`` has them all."""
