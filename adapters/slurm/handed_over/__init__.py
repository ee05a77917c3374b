"""Jobs that their users hand over: which they are, and what pilotfish changes in them."""
