"""Kernels that replay traces of rigid jobs on a machine of numbered resources under a queue policy.

Rule: jobs are rows in the order of submission. All state is in the tables, so a run can pause after any instant and
resume later.
"""
