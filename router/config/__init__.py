"""Configuration of the router: the model, the readers of its files, and the checks."""
