"""Controllers of the member clusters themselves."""
