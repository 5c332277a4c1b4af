"""The controllers. Each one is named as in the settings, and reconciles one object at a time, by its key.

It reads the cache, asks a pure function for the patch, and writes that with a precondition. So a controller
may be killed at any line and started again: the next reconciliation finds what is missing.
"""
