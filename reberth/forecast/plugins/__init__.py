"""kube-scheduler's plugins, one file each."""
