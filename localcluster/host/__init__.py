"""Processes and ports of this machine."""
