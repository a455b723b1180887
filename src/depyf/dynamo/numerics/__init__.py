"""Values in compiled graphs: where the first bad one is made, which stage computes another one, graphs as scripts."""
