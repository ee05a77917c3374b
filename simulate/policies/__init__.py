"""Policies: what decides. Each sees only what a scheduler can know, and is deterministic for a seed."""
