"""Train orders of the queue, judge them, and show what a model's file says."""
