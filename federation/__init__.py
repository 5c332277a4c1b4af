"""The loop between clusters: where replicas go, why, and how they get there safely."""
