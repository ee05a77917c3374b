"""The kernel that reads the fields of tables divided by bars."""
