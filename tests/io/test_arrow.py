import pytest

from surefoot import tracing
from surefoot.exceptions import MissingExtraError
from surefoot.io.arrow import load_arrow


def test_a_missing_package_is_named(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(tracing.importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r'pip install "surefoot\[panels\]"'):
        load_arrow("pyarrow")
