"""The command `daemon`, and the commands of its clients: submit, status, nodes, cancel, explain, accuracy."""
