"""Reberth itself on the local cluster: what `make up` brings up beside the control plane."""
