"""Hosting of plugins: their interface to the router, and the router's protection from them."""
