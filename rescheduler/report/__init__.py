"""The report about a cluster: what would move and why, what cannot, and what to switch on first."""
