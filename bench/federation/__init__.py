"""How soon many Deployments stand in two of three members, and with how many calls to the hub."""
