"""The API server: calls, watches, the lease, Events."""
