"""Nodes with a real kubelet in a virtual machine: cgroup v2, and pressure stall information."""
