"""How well repeated advice on costs does."""
