"""Orders of the queue inside EASY backfilling, decision by decision, in many copies at once."""
