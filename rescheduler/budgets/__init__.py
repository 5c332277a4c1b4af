"""BUDGET: PodDisruptionBudgets, rates, moves in flight, quotas, brakes."""
