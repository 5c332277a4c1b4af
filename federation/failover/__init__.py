"""MOVE off a lost or tainted cluster: taints, eviction tasks, preserved state."""
