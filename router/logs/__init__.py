"""Log of the router: lines for people or machines, the last lines, and line counts."""
