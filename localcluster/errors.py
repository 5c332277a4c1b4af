"""The error of everything that can go wrong with a local cluster."""


class LocalClusterError(Exception):
    """One message for a person: what is missing and what to do."""
