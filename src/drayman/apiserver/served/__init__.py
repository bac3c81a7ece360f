"""What is served: the table of resources, the rules of a kind, what acts on it, and the stored form of its objects."""
