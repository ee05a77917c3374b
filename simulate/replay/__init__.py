"""Replay traces of rigid jobs on a machine under a queue policy."""
