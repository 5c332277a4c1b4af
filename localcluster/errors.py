"""What can go wrong with a cluster on this machine."""


class LocalClusterError(Exception):
    """One message for a person: what is missing and what to do."""
