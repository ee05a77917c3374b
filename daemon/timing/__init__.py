"""Timing of the service: when it reads the resource manager, and when it does its other work."""
