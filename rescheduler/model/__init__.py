"""Values that every step shares: the plan, its memory, guardrails, quiet hours."""
