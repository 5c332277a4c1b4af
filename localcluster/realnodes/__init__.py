"""Nodes with a real kubelet and containerd, each in Linux namespaces of its own."""
