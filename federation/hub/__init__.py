"""Clients and caches of the hub and of the members, and the work queue."""
