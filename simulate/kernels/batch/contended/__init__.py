"""Jobs of independent one-core tasks that contend for the memory of their processor.

Rule: the same instants as in all replays: all ends, then all submissions, then one pass. Between them every task goes
on at a constant rate; when one starts or ends only its processor is rated anew.
"""
