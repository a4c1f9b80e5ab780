"""A simulated fortnight of a cluster: what a team is told, and what a z-score would have told it."""
