import re
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surefoot import tracing
from surefoot.exceptions import InvalidInputError, InvalidTypeError, MissingExtraError
from surefoot.tracing import check_function, keep_compiled, load_arrow, load_jax


def check(fn, shapes=((2,), (2,)), returns=()):
    check_function("fn(z, y)", fn, shapes, returns, "one number")


def refused(fn, **options):
    """Return the message with which a function is refused."""
    with pytest.raises((InvalidInputError, InvalidTypeError)) as caught:
        check(fn, **options)
    return str(caught.value)


NO_DERIVATIVE = (
    "fn(z, y) must depend on its first argument in a way that has a derivative, got a derivative of "
    "zero (rounding, comparisons and counts have none)."
)


@pytest.mark.parametrize(
    "fn",
    [
        lambda z, y: jnp.sum((z - y) ** 2),
        lambda z, y: jnp.maximum(z - y, 0.0).sum(),
        lambda z, y: jnp.maximum(z - 1.6, 0.0).sum(),  # flat where it is tried first
        lambda z, y: jnp.where(z[0] > y[0], z[0], 2.0 * y[1]) + z[1],
        lambda z, y: jnp.round(z[0]) * y[0] + z[1],
        lambda z, y: (z[:1] - y[:1]) ** 2,  # shape (1,) counts as one number
        lambda z, y: jnp.asarray(z @ y, dtype=jnp.float32),
    ],
)
def test_functions_that_work_pass(fn):
    assert check(fn) is None


def test_a_vector_is_wanted_where_a_vector_is_said():
    check(lambda z, y: z * y, returns=(2,))
    assert refused(lambda z, y: z @ y, returns=(2,)) == (
        "fn(z, y) must return one number (shape (2,)), got shape ()."
    )
    check(lambda z, y: z[:1] * y[0], returns=(1,))


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda z, y: None, "fn(z, y) must return one number, got NoneType."),
        (lambda z, y: (z[0], y[0]), "fn(z, y) must return one number, got tuple."),
        (lambda z, y: [z[0]], "fn(z, y) must return one number, got list."),
        (lambda z, y: {"cost": z[0]}, "fn(z, y) must return one number, got dict."),
        (lambda z, y: z - y, "fn(z, y) must return one number (shape ()), got shape (2,)."),
        (lambda z, y: (z @ y)[None, None], "fn(z, y) must return one number (shape ()), got shape (1, 1)."),
        (lambda z, y: jnp.log(-z).sum(), "fn(z, y) must be finite at ordinary numbers, got nan."),
        (lambda z, y: 1e400 * z[0], "fn(z, y) must be finite at ordinary numbers, got inf."),
        (lambda z, y: (1j * z).sum(), "fn(z, y) must return one number, got a complex one."),
        (lambda z, y: jnp.round(z - y).sum(), NO_DERIVATIVE),
        (lambda z, y: jnp.sign(z - y).sum(), NO_DERIVATIVE),
        (lambda z, y: (z > y).sum(), NO_DERIVATIVE),  # a whole number
        (lambda z, y: (z > y)[0], NO_DERIVATIVE),  # true or false
        (lambda z, y: y @ y, NO_DERIVATIVE),
        (lambda z, y: 3.0, NO_DERIVATIVE),
        (lambda z, y: 3, NO_DERIVATIVE),
        # Flat at the first place, and without a value at most others.
        (lambda z, y: 0.0 * jnp.sqrt(2.0 - z.sum()), NO_DERIVATIVE),
    ],
)  # fmt: skip
def test_what_a_function_returns(fn, message):
    assert refused(fn) == message


def test_a_derivative_that_is_not_finite_is_refused():
    message = refused(lambda z, y: jnp.where(z > 10.0, jnp.sqrt(-z), z).sum())
    assert message == "fn(z, y) must have a finite derivative in its first argument, got [nan nan]."


def own_error(z, y):
    raise RuntimeError("no such product\nsecond line")


def silent_error(z, y):
    raise KeyError


@pytest.mark.parametrize(
    ("fn", "got"),
    [
        (lambda z, y: z[0] if z[0] > y[0] else y[0], "TracerBoolConversionError: Attempted boolean"),
        (lambda z, y: np.maximum(np.asarray(z), 0.0).sum(), "TracerArrayConversionError: The numpy.ndarray"),
        (lambda z, y: float(z[0]), "ConcretizationTypeError: Abstract tracer value"),
        (lambda z: z[0], "TypeError: <lambda>() takes 1 positional argument but 2 were given"),
        (lambda z, y: "cheap", "TypeError: "),
        (own_error, "RuntimeError: no such product"),
        (silent_error, "KeyError: no message"),
    ],
)  # fmt: skip
def test_what_jax_cannot_trace_is_quoted(fn, got):
    message = refused(fn)
    shape = (
        "fn(z, y) must be a function that JAX can trace (jax.numpy, no Python 'if' on values, no NumPy "
        f"conversions), got {got}"
    )
    assert message.startswith(shape)
    assert "\n" not in message


def test_a_function_that_cannot_be_differentiated_is_refused():
    def doubles(z, y):
        return jax.lax.while_loop(lambda value: value[0] < 10.0, lambda value: 2.0 * value, z)[0]

    start = (
        "fn(z, y) must be a function that JAX can differentiate, got ValueError: Reverse-mode "
        "differentiation does not work"
    )
    assert refused(doubles).startswith(start)


def test_the_user_s_own_error_is_the_cause():
    with pytest.raises(InvalidInputError) as caught:
        check(own_error)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_trying_a_function_leaves_jax_as_it_was():
    assert not jax.config.jax_enable_x64
    check(lambda z, y: z @ y)
    with pytest.raises(InvalidInputError):
        check(own_error)
    assert not jax.config.jax_enable_x64
    seen = []
    check(lambda z, y: (seen.append(z.dtype), z @ y)[1])
    assert set(seen) == {np.dtype("float64")}


def test_jax_is_loaded_or_the_command_is_named(monkeypatch):
    assert load_jax("Anything") is jax
    cause = ImportError("No module named 'jax'")

    def missing(name):
        assert name == "jax"
        raise cause

    monkeypatch.setattr("importlib.import_module", missing)
    message = 'CustomCost needs JAX: run pip install "surefoot[jax]".'
    with pytest.raises(MissingExtraError, match=f"^{re.escape(message)}$") as caught:
        load_jax("CustomCost")
    assert caught.value.__cause__ is cause
    assert isinstance(caught.value, ImportError)


class Settings(SimpleNamespace):
    """Stands for ``jax.config``: what is set stays in this test."""

    def update(self, name, value):
        assert hasattr(jax.config, name)  # JAX knows the option
        setattr(self, name, value)


@pytest.fixture
def fake_jax(monkeypatch, tmp_path):
    monkeypatch.delenv("SUREFOOT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    settings = Settings(jax_compilation_cache_dir=None, jax_persistent_cache_min_compile_time_secs=1.0)
    return SimpleNamespace(config=settings, __version__="1.2.3")


def folder_of(fake):
    return fake.config.jax_compilation_cache_dir


def test_compiled_code_is_kept_in_the_user_s_cache(fake_jax, tmp_path):
    keep_compiled(fake_jax)
    assert Path(folder_of(fake_jax)) == tmp_path / "xdg" / "surefoot" / "jax-1.2.3"
    assert fake_jax.config.jax_persistent_cache_min_compile_time_secs < 1.0


@pytest.mark.parametrize("unset", [True, False])
def test_without_a_cache_folder_it_is_the_usual_place(fake_jax, monkeypatch, tmp_path, unset):
    if unset:
        monkeypatch.delenv("XDG_CACHE_HOME")
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    keep_compiled(fake_jax)
    assert Path(folder_of(fake_jax)) == tmp_path / ".cache" / "surefoot" / "jax-1.2.3"


def test_a_folder_of_one_s_own(fake_jax, monkeypatch, tmp_path):
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path / "mine"))
    keep_compiled(fake_jax)
    assert Path(folder_of(fake_jax)) == tmp_path / "mine" / "jax-1.2.3"


def test_off_leaves_jax_alone(fake_jax, monkeypatch):
    monkeypatch.setenv("SUREFOOT_CACHE", "off")
    keep_compiled(fake_jax)
    assert folder_of(fake_jax) is None
    assert fake_jax.config.jax_persistent_cache_min_compile_time_secs == 1.0


def test_a_user_s_own_setting_stays(fake_jax, monkeypatch):
    fake_jax.config.jax_compilation_cache_dir = "/theirs"
    monkeypatch.setenv("SUREFOOT_CACHE", "/mine")
    keep_compiled(fake_jax)
    assert folder_of(fake_jax) == "/theirs"
    assert fake_jax.config.jax_persistent_cache_min_compile_time_secs == 1.0


def test_the_real_jax_takes_the_settings(monkeypatch, tmp_path):
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path))
    try:
        jax.config.update("jax_compilation_cache_dir", None)
        keep_compiled(jax)
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / f"jax-{jax.__version__}")
        keep_compiled(jax)  # a second time finds the first's setting and leaves it
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / f"jax-{jax.__version__}")
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


def test_a_missing_package_is_named(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(tracing.importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r'pip install "surefoot\[panels\]"'):
        load_arrow("pyarrow")
