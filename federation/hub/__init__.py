"""The hub's and the members' API servers, caches of them, the work queue."""
