"""Helpers on xDSL IR that passes share: locations, checks, rewriting."""
