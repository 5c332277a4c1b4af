"""Decisions on one member cluster: its status, its taints, its kubeconfig."""
