"""PLAN a move away from a cluster in which a workload fails."""
