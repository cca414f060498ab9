"""The log: lines for people or machines, and what is remembered and counted of them."""
