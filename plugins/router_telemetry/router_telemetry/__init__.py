"""Export what a router sees as Parquet files."""
