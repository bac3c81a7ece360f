"""The server put together: over sockets, and for clients in the same process."""
