"""pilotfish: a co-scheduler that simulates before it dispatches."""

__version__ = "0.1.0"
