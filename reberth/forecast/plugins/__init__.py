"""kube-scheduler's plugins, one module each, all nodes at once."""
