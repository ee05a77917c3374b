"""`pilotfish simulate`, piece by piece: its options, what they ask for, what is read, the replay, the report.

Rule: each piece hands one value to the next; all but `options` are imported when the command is invoked.
"""
