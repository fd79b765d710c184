"""What several tests of the runtime take."""

from __future__ import annotations

import pytest

from tests.support.launching import NotingDevice


@pytest.fixture
def device() -> NotingDevice:
    return NotingDevice()
