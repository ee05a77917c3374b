"""Calibration of a node: measured performance, and fitted constants of its models."""
