"""Read Dispatch's configuration files, report on them, run them, and convert them."""
