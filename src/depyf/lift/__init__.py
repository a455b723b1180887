"""From a stack machine to expressions and ordered effects: blocks become nodes of statements with a terminator."""
