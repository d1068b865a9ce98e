"""Packet, brief, cleaning and redaction."""
