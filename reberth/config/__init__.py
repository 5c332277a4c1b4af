"""Files that operators write: YAML to frozen records, every fault with its line."""
