"""Trees: hashing, comparing, composing and restoring on real repositories."""
