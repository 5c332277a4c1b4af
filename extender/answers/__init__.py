"""From a question of kube-scheduler and what is known, to the bytes of the answer."""
