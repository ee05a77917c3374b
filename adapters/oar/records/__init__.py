"""Records read from OAR: its nodes and jobs, and what jobs ask for."""
