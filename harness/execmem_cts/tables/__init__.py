"""The published tables that the reference is held against: traces, the models that place their blocks, the replays."""
