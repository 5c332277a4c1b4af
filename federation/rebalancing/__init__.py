"""Replicas back to better places: what is asked for, what has come of it, how copies change hands.

All of it is a function of objects and the time.
"""
