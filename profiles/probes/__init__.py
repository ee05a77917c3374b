"""What can be read of a running process tree, one probe each."""
