"""REMEMBER: notes, histories, the ledger and add-on scores, and the advice that is drawn from them."""
