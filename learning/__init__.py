"""Learning: orders of the queue found by search, and how they are judged. Only the command line and `api` import it."""
