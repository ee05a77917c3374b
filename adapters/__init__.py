"""Adapters: the resource managers with which pilotfish works."""

#: The adapter of a configuration that names none: this machine.
DEFAULT = "local"
