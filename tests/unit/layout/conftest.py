"""Property tests of small integer code: many cheap cases, no limit on a slow machine's clock."""

from hypothesis import settings

settings.register_profile("layout", deadline=None, max_examples=40)
settings.load_profile("layout")
