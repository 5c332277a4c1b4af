"""Controllers from the policy to the objects in the members, and back to the status."""
