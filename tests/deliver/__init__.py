"""The git effects of a run, on real repositories."""
