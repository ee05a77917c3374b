"""Kernels that replay traces of rigid jobs: a machine of numbered resources, a queue, a policy.

Rule: one row a job, in the order of submission; each run can be left after any instant and taken up again, because all
that it knows stands in its tables.
"""
