"""The service and its command line: cycle, journal, exporter, clients. Imports every other room."""
