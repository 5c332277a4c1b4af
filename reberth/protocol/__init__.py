"""The Kubernetes API as bytes, without I/O: requests out, responses in."""
