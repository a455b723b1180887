"""Basic blocks, protected regions, dominators and loops; undoes copies that the compiler made of whole blocks."""
