"""Adapters: the resource managers with which pilotfish works."""
