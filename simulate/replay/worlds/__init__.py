"""Worlds of a replay: which parts of jobs and machine are simulated. Each has a compiled or a Python policy."""
