"""What is read of OAR: its nodes and jobs, and what jobs ask for."""
