import pytest

from .contract import rows


@pytest.fixture(scope="module")
def X():
    return rows()
