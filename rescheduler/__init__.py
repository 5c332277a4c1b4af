"""Decides which pods move, moves them, and knows where they landed."""
