"""The cases, one a file: each module defines CASE."""
