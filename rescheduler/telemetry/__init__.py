"""What is told of plans and moves: metrics and Events."""
