"""Mapping policies and the planner. A policy sees only what a scheduler can know, and is deterministic for a seed."""
