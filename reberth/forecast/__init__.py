"""A forecast of kube-scheduler: a pod's feasible nodes, their scores to the integer, and their chances."""
