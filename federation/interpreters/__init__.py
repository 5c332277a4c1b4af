"""What kinds mean: health, replicas, status and dependencies, by rules in Lua that users write."""
