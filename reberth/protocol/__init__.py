"""The Kubernetes API as bytes, without I/O: build requests, read responses."""
