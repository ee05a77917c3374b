"""What all readers and writers share: files, documents, tables, quantities with units, and their errors."""
