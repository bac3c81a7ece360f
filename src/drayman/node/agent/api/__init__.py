"""What a node serves to its cluster, and how it proves who it is."""
