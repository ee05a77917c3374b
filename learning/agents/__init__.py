"""Agents that learn in environments, in NumPy alone."""
