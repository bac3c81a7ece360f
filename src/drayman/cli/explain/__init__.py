"""`drayman explain`: why something waits, what would help, and why it is where it is."""
