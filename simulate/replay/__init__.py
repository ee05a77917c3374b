"""Replay traces of rigid jobs on a machine under a queue policy.

Rule: every policy sees the same sequence at each instant: all job ends, then all submissions, then one scheduling pass.
"""
