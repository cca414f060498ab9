"""Export a router's flow records, sampled deliveries and events as Parquet files."""
