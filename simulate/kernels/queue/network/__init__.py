"""Jobs whose speed depends on their placement and on the jobs with which they share links.

Rule: the policies are the same as in other replays; these kernels only determine when jobs end.
"""
