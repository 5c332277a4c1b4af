"""Files that operators write: from YAML to frozen records; every fault is reported with its line."""
