"""The inputs of a forecast: the pod, the cluster, the scheduler's profile."""
