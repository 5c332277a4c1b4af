"""From a call of kube-scheduler and the cached cluster to the bytes of the answer."""
