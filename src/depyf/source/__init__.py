"""From statements to a tree a person would have written, its text, and code compiled from that text."""
