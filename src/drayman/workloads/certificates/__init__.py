"""What requests for certificates ask for, and who may have it: pure halves of the controllers that approve and sign."""
