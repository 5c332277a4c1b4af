"""What is in certificates, and how they are made."""
