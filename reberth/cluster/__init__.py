"""OBSERVE: the state of one cluster, as rows, templates, a cache and its snapshots."""
