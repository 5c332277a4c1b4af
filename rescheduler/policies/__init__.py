"""What may speak for a move: one file a policy, each a pure look at the columns that ends in proposals."""
