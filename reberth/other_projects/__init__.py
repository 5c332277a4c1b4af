"""What kinds of other projects mean: one table, and how its rules are read."""
