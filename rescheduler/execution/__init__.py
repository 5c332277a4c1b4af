"""MOVE, done: carries moves out, resumes them, watches their replacements."""
