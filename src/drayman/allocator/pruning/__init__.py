"""What cuts branches off the search tree: bounds by count, sum and room, and symmetry between devices, requests and claims."""
