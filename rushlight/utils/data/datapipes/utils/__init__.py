"""What pipes of one's own are written with."""
