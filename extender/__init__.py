"""THE SCHEDULER ASKS: kube-scheduler's extender, which answers from the shared memory."""
