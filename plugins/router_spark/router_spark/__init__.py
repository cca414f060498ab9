"""Analyse a network's flow records, sampled deliveries and events with Spark."""
