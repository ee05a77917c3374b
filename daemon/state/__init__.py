"""State: the queue, its journal with the texts in it, and the write-ahead step between them."""
