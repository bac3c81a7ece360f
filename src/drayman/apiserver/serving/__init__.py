"""The assembled server: over sockets, and for clients in the same process."""
