"""State: the queue, its journal and the write-ahead step between them."""
