"""Jobs whose speed depends on where they run and on whom they share links with.

Rule: the policies are those of the other replays; only when a job ends is found out here.
"""
