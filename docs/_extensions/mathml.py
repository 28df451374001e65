"""Formulas as MathML, which browsers draw by themselves: no script, no network, also in print."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def formula(code: str, *, block: bool) -> str:
    """Return a formula of LaTeX as MathML; docutils knows no fractions of a size of their own."""
    return str(tex2mathml(code.replace(r"\tfrac", r"\frac"), as_block=block))


def inline_formula(translator: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    translator.body.append(formula(node.astext(), block=False))
    raise nodes.SkipNode


def displayed_formula(translator: Any, node: nodes.math_block) -> None:
    """Write a formula in a line of its own, which scrolls where it is too long."""
    drawn = formula(node.astext(), block=True)
    translator.body.append(f'<div class="formula">{drawn}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
