"""pilotfish: a co-scheduler that simulates before it dispatches."""

__version__ = "1.0.0"
