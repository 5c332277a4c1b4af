"""What the controllers tell of their work: metrics, and Events of single steps."""
