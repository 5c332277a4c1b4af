"""Controllers that take workloads off clusters that are lost or tainted."""
