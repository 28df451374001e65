import pytest

from surefoot.exceptions import MissingExtraError
from surefoot.io import arrow


def test_a_missing_package_is_named(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(arrow.importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r'pip install "surefoot\[panels\]"'):
        arrow.load_arrow("pyarrow")
