"""What is served: the table of resources, the rules of a kind, who acts on it, and the form its objects are stored in."""
