"""Learned orders of the queue that are guarded: a baseline, and what is kept of them from plan to plan."""
