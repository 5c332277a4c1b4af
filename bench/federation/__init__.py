"""How long it takes to propagate many Deployments to two of three members, and how many calls."""
