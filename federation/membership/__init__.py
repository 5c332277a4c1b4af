"""OBSERVE: a member cluster, its status, its taints, the way into it."""
