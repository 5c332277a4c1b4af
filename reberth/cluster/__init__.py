"""OBSERVE: what is known of one cluster, as rows, templates, a cache and its snapshots."""
