"""The daemon: its process, leadership, the cycle loop, and monitors."""
