"""From policy to binding, to Work, to the object in the member, and its status back."""
