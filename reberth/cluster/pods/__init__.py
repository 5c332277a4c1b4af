"""What one pod says: who it is, what it requests, whether it is well, what it shares with its replicas."""
