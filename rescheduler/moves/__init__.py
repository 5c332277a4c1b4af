"""MOVE and VERIFY, decided: the steps of a move, its last checks, the server's answers, its outcome."""
