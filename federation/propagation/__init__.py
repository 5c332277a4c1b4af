"""Decisions from the policy to the binding, the Work, the copy in the member, and its status back."""
