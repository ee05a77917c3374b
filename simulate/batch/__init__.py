"""Replaying traces of rigid jobs: queue policies, machines, their results.

Rule: the same instants for every policy: all ends, then all submissions, then one pass.
"""
