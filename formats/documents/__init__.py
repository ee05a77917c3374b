"""The basis of all readers and writers: files, documents, tables, quantities with units, and their errors."""
