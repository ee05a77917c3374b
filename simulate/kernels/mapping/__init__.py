"""Kernels of the fluid simulation: mapping policies, rates under contention and forecasts."""
