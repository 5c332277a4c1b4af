"""Reberth on the local cluster: what `make up` starts beside the control plane."""
