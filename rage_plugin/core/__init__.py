"""The pure heart: what a run is and what follows from what was observed.

Nothing here does I/O, reads a clock or draws a random number; those come in as arguments, so the
same events give the same decision in any process.
"""
