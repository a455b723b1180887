"""What to do about what was found: one piece of advice for one cause, for the questions and for the page alike."""
