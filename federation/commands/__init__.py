"""The commands of `python -m federation` that serve: the webhook."""
