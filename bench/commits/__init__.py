"""The same work at several commits: what a change of the code has cost or spared."""
