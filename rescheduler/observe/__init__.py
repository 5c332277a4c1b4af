"""OBSERVE: the cluster as rules and policies see it, and forecasts of one pod."""
