"""PROPOSE: one file per policy; each reads the columns of the cluster and proposes moves."""
