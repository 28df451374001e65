"""How the words of a command line become options: none is silently given twice, lists may be lists."""

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer
from typer.core import TyperCommand, TyperOption

from surefoot.exceptions import InvalidInputError


def amount(text: str) -> float:
    """Return a number as typed; what is none is named, with the spelling that would be one.

    >>> amount("2.50")
    2.5
    """
    try:
        return float(text)
    except ValueError as error:
        point = text.replace(",", ".", 1)
        hint = f": write {point}" if point.replace(".", "", 1).isdigit() else ""
        raise typer.BadParameter(f"must be a number, got {text!r}{hint}.") from error


def option(metavar: str, help: str, *names: str, **more: Any) -> Any:
    """Return an option that takes a value; ``names`` where it is not called as its parameter."""
    return typer.Option(*names, metavar=metavar, help=help, **more)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take options in groups: a parameter that is a dataclass stands for its fields.

    Fields that are no options keep their defaults.
    """
    given = inspect.signature(command).parameters.values()
    groups: dict[str, Any] = {
        one.name: one.annotation for one in given if dataclasses.is_dataclass(one.annotation)
    }

    @wraps(command)
    def run(**told: Any) -> None:
        for name, kind in groups.items():
            told[name] = kind(**{option.name: told.pop(option.name) for option in _options(kind)})
        command(**told)

    apart = [list(_options(one.annotation)) if one.name in groups else [one] for one in given]
    flat = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in apart for one in part]
    vars(run)["__signature__"] = inspect.Signature(flat)
    return run


def _options(group: Any) -> Iterator[inspect.Parameter]:
    """Yield the fields of a group that are options, as parameters."""
    for one in dataclasses.fields(group):
        if get_origin(one.type) is Annotated:
            default: Any = one.default
            if one.default_factory is not dataclasses.MISSING:
                default = one.default_factory()
            elif default is dataclasses.MISSING:
                default = inspect.Parameter.empty
            yield inspect.Parameter(
                one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=one.type
            )


class Command(TyperCommand):
    """A command that takes ``--drop date price`` for two values, and no option twice."""

    def __init__(self, *args: Any, help: str | None = None, **options: Any) -> None:
        # Lines of a paragraph are one: the screen, not the source, says where they break.
        paragraphs = [" ".join(text.split()) for text in (help or "").split("\n\n")]
        super().__init__(*args, help="\n\n".join(paragraphs), **options)

    # Typer's context is a subclass of the one that the parent class is written for.
    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Spread lists, look for options given twice, and parse."""
        options = [param for param in self.params if isinstance(param, TyperOption)]
        spread = spread_lists(args, {name for one in options if one.multiple for name in one.opts})
        for option in options:
            if not option.multiple and not option.is_flag:
                _refuse_twice(spread, option)
        return super().parse_args(ctx, spread)


def spread_lists(args: list[str], many: set[str]) -> list[str]:
    """Return arguments with the name of a list before each of its values.

    A file that is there is never a value: it is the data.

    >>> spread_lists(["--drop", "date", "price", "--seed", "1"], {"--drop"})
    ['--drop', 'date', '--drop', 'price', '--seed', '1']
    """
    spread: list[str] = []
    current = ""
    values = 0
    for arg in args:
        if arg.startswith("-") and arg != "-":
            current, values = (arg if arg in many else ""), 0
            spread.append(arg)
            continue
        if current and values > 0:
            if arg == "-" or Path(arg).is_file():
                current = ""
            else:
                spread.append(current)
        spread.append(arg)
        values += 1
    return spread


def _refuse_twice(args: list[str], option: Any) -> None:
    given = [
        args[place + 1] if "=" not in arg and place + 1 < len(args) else arg.partition("=")[2]
        for place, arg in enumerate(args)
        if arg.partition("=")[0] in option.opts
    ]
    if len(given) > 1:
        name = max(option.opts, key=len)
        raise InvalidInputError(f"{name} must be given once, got {' and '.join(map(repr, given))}.")
