"""The gate: what is known to fail, shards and their merge, and the files that other programs read."""
