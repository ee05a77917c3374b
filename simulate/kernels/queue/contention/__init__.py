"""Jobs of independent one-core tasks that contend for the memory of their processor.

Rule: at each instant all ends are processed, then all submissions, then one pass. Between instants every task has a
constant rate; when a task starts or ends, only the rates on its processor change.
"""
