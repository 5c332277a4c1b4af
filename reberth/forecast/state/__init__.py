"""What a forecast looks at: the pod, the cluster, the scheduler's profile."""
