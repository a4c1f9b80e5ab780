"""A training run that goes wrong, a receiver, and the real daemon between them."""
