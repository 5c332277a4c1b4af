"""Generates files of the repository: the commented policy, the dashboards, the alerts."""
