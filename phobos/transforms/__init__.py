"""Passes on the IR, one a file; `phobos.pipeline` names and orders them."""
