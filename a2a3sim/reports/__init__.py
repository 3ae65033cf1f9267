"""Reports over results: cost card, timeline, traffic, tables."""
