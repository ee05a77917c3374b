"""The socket of the service: its two ends, the requests of clients, and who may make them."""
