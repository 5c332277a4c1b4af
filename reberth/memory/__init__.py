"""REMEMBER: notes, histories, the move ledger and add-on scores, and the advice derived from them."""
