"""From results to what a client asked for: bytes, tables, or objects for clients in the same process."""
