"""The pod that a controller would create in the place of another: its template, through today's admission."""
