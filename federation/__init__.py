"""Multi-cluster scheduling: where replicas go, why, and how they get there safely."""
