"""Calibration of a node: what it can do, measured; the constants of its models, fitted."""
