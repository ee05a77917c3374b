"""Formats of workflows: our own, WfCommons, Pegasus DAX."""
