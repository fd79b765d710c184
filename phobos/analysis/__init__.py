"""Analyses: each answers questions about the IR and changes nothing."""
