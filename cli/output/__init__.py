"""Output for people: tables, summaries, live views; and JSON documents.

Rule: it reads plans and snapshots and returns text; it decides nothing and starts nothing.
"""
