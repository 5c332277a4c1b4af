"""Facts about one pod: its identity, its requests, its health, and what it shares with its replicas."""
