"""What a unit short and a unit left over cost, in the words of whoever sells it."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

from surefoot.cli.parsing import amount, option
from surefoot.exceptions import InvalidInputError

_MONEY = "What a unit costs: --backorder and --holding, or --price and --cost"
# From this ratio of costs on, all but one order in a hundred is to be enough (or too small): more often
# a slip of the pen than a wish.
DOUBTFUL_RATIO = 100.0


def _option(metavar: str, help: str) -> Any:
    return option(metavar, help, parser=amount, rich_help_panel=_MONEY)


def _column(help: str) -> Any:
    return option("COLUMN", help, rich_help_panel=_MONEY)


@dataclass(frozen=True, kw_only=True)
class Economics:
    """Costs as given on the command line: two costs, or prices that they follow from."""

    backorder: Annotated[float | None, _option("B", "Cost of a unit short.")] = None
    holding: Annotated[float | None, _option("H", "Cost of a unit left over.")] = None
    price: Annotated[float | None, _option("P", "What a unit sells for.")] = None
    cost: Annotated[float | None, _option("C", "What a unit costs.")] = None
    salvage: Annotated[float | None, _option("S", "What one left over brings (0).")] = None
    goodwill: Annotated[
        float | None, _option("G", "What a lost customer costs beside the sale (0).")
    ] = None

    def costs(self) -> tuple[float, float]:
        """Return (backorder, holding), or say what is missing or cannot be.

        >>> Economics(price=5.0, cost=2.0, salvage=1.0).costs()
        (3.0, 1.0)
        """
        prices = {
            name: getattr(self, name)
            for name in ("price", "cost", "salvage", "goodwill")
            if getattr(self, name) is not None
        }
        direct = {"backorder": self.backorder, "holding": self.holding}
        given = [name for name, value in direct.items() if value is not None]
        if given and prices:
            raise InvalidInputError(
                f"Give --backorder and --holding, or --price and --cost, got --{given[0]} and "
                f"--{next(iter(prices))}."
            )
        if prices:
            return self._from_prices(prices)
        if len(given) < 2:
            got = f"only --{given[0]}" if given else "neither"
            raise InvalidInputError(
                "Say what a unit short and a unit left over cost: --backorder and --holding, or "
                f"--price and --cost (and --salvage, --goodwill), got {got}."
            )
        return _checked("backorder", self.backorder), _checked("holding", self.holding)

    def _from_prices(self, prices: dict[str, float]) -> tuple[float, float]:
        for name in ("price", "cost"):
            if name not in prices:
                raise InvalidInputError(f"--price and --cost must come together, got no --{name}.")
        for name, value in prices.items():
            if name != "salvage" or not math.isfinite(value):  # getting rid of a unit may cost
                _checked(name, value, zero=True)
        price, cost = prices["price"], prices["cost"]
        salvage, goodwill = prices.get("salvage", 0.0), prices.get("goodwill", 0.0)
        if not price + goodwill > cost:
            raise InvalidInputError(
                f"--price must be above --cost ({cost:g}), or no order pays, got {price:g}."
            )
        if not salvage < cost:
            raise InvalidInputError(
                f"--salvage must be below --cost ({cost:g}), or every unit pays, got {salvage:g}."
            )
        return price - cost + goodwill, cost - salvage

    def sentence(self) -> str:
        """Return what the numbers mean for an order.

        >>> print(Economics(price=5.0, cost=2.0, salvage=1.0).sentence())
        A unit short costs 3 (price 5 - cost 2 + goodwill 0), a unit left over 1 (cost 2 - salvage 1).
        So an order should be enough in 75 of 100 cases.
        """
        backorder, holding = self.costs()
        short, left = "--backorder", "--holding"
        if self.price is not None:
            short = f"price {self.price:g} - cost {self.cost:g} + goodwill {self.goodwill or 0:g}"
            left = f"cost {self.cost:g} - salvage {self.salvage or 0:g}"
        share = 100 * backorder / (backorder + holding)
        return (
            f"A unit short costs {backorder:g} ({short}), a unit left over {holding:g} ({left}). "
            f"So an order should be enough in {share:.0f} of 100 cases."
        )

    def doubt(self) -> str | None:
        """Return what costs that are far apart ask of orders, and what to look at; None for others.

        >>> print(Economics(backorder=1500.0, holding=10.0).doubt())
        A unit short costs 150 times as much as one left over: orders are to cover 99.34 % of cases. If
        that is not meant, is a decimal sign missing in --backorder or --holding?
        """
        backorder, holding = self.costs()
        ratio = max(backorder, holding) / min(backorder, holding)
        if ratio < DOUBTFUL_RATIO:
            return None
        dear, cheap = ("short", "left over") if backorder > holding else ("left over", "short")
        share = 100.0 * backorder / (backorder + holding)
        # As many decimals as tell it from 0 and 100.
        decimals = 1 + math.ceil(math.log10(min(ratio / DOUBTFUL_RATIO, 1e12)))
        options = "--backorder or --holding" if self.price is None else "--price or --cost"
        return (
            f"A unit {dear} costs {ratio:.4g} times as much as one {cheap}: orders are to cover "
            f"{share:.{decimals}f} % of cases. If that is not meant, is a decimal sign missing in "
            f"{options}?"
        )


@dataclass(frozen=True, kw_only=True)
class RowEconomics(Economics):
    """Costs of a fit: numbers, or columns that hold those of each row."""

    backorder_column: Annotated[
        str | None, _column("Column with the cost of a unit short, row by row.")
    ] = None
    holding_column: Annotated[str | None, _column("Column with the cost of a unit left over.")] = None

    @property
    def columns(self) -> dict[str, str]:
        """Columns with costs of each row, by "backorder" and "holding"; mostly there are none."""
        given = {"backorder": self.backorder_column, "holding": self.holding_column}
        return {cost: name for cost, name in given.items() if name is not None}

    def numbers(self) -> dict[str, float]:
        """Return the costs that all rows share, by name, or say what is missing or cannot be.

        >>> RowEconomics(backorder_column="margin", holding=2.0).numbers()
        {'holding': 2.0}
        """
        if not self.columns:
            return dict(zip(("backorder", "holding"), self.costs(), strict=True))
        for name in ("price", "cost", "salvage", "goodwill"):
            if getattr(self, name) is not None:
                raise InvalidInputError(
                    f"--{next(iter(self.columns))}-column must come with --backorder or --holding "
                    f"alone, got --{name}."
                )
        numbers = {}
        for name in ("backorder", "holding"):
            number = getattr(self, name)
            if (number is None) == (name not in self.columns):
                got = "neither" if number is None else "both"
                raise InvalidInputError(f"Give --{name} or --{name}-column, got {got}.")
            if number is not None:
                numbers[name] = _checked(name, number)
        return numbers


def _checked(name: str, value: float | None, *, zero: bool = False) -> float:
    """Return a finite amount; ``surefoot.validation`` would load NumPy before help is shown."""
    if value is None or not math.isfinite(value) or not (value > 0 or (zero and value == 0)):
        raise InvalidInputError(f"--{name} must be {'>=' if zero else '>'} 0 and finite, got {value}.")
    return value
