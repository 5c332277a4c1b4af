"""A real Kubernetes control plane on this machine: built once from pinned Go modules, up in seconds."""
