"""Where would this pod land: kube-scheduler's own feasibility and scores, to the integer."""
