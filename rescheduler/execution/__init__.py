"""MOVE, shell: executes moves, resumes those of an earlier leader, and waits for their replacements."""
