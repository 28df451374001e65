"""The page: whole, well-formed, escaped, small, and the same every time."""

import dataclasses
import re
from html.parser import HTMLParser

import pytest

from surefoot.costs import MeanCVaR
from surefoot.report.markup import Markup, element, grid
from surefoot.report.page import page
from surefoot.report.pictures import MOST_LINES

VOID = {"meta", "br", "img", "link"}
SECTIONS = [
    "The data", "Decisions and outcomes", "Cost out of sample", "What a shift of the data would cost",
    "Which columns matter", "To repeat it",
]  # fmt: skip


class Reader(HTMLParser):
    """Checks that every element is closed in order, and collects what is there."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.words = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append(data)


def read(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module", params=["linear", "evil"])
def facts(request):
    return request.getfixturevalue(f"{request.param}_facts")


def test_the_page_is_well_formed_small_and_self_contained(facts):
    text = page(facts)
    reader = read(text)
    assert text.startswith("<!DOCTYPE html>")
    assert len(text.encode()) < 2_000_000
    assert not {"script", "link", "img", "iframe", "object", "i", "b"} & (set(reader.tags) - {"b"})
    assert not [
        name for name, _ in reader.attributes if name.startswith("on") or name in ("src", "href")
    ]
    assert "url(" not in text
    assert "@import" not in text
    assert re.findall(r"<h2>(.*?)</h2>", text) == SECTIONS


def test_names_that_are_traps_are_shown_and_never_markup(evil_facts):
    text = page(evil_facts)
    words = "".join(read(text).words)
    for name in ("<script>alert(1)</script>", "a\"b'c&d", "<img src=x onerror=alert(1)>", "<i>a</i>"):
        assert name in words
        assert name not in text or name == "a\"b'c&d"


def test_traps_in_the_origin_are_escaped(linear_facts):
    trap = "</style><script>alert(1)</script>"
    origin = dataclasses.replace(
        linear_facts.origin, source=trap, command=trap, notes=(trap,), checksum=trap, economics=trap
    )
    facts = dataclasses.replace(linear_facts, origin=origin, notes=(trap,), recipe=trap)
    reader = read(page(facts))
    assert "script" not in reader.tags
    assert trap in "".join(reader.words)


def test_the_same_facts_give_the_same_bytes(facts):
    assert page(facts) == page(facts)


def test_light_dark_print_and_telephones_are_provided_for(facts):
    text = page(facts)
    assert 'name="viewport" content="width=device-width, initial-scale=1"' in text
    for rule in (
        "@media screen and (prefers-color-scheme: dark)", "@page { size: A4", "@media print",
        "@media (max-width: 620px)", "page-break-inside: avoid",
    ):  # fmt: skip
        assert rule in text


def test_every_line_has_its_name_and_panels_have_few(facts):
    text = page(facts)
    for figure in re.findall(r"<figure>.*?</figure>", text, re.DOTALL):
        curves = set(re.findall(r'polyline class="curve (\w+)"', figure))
        legend = re.search(r'<ul class="legend">(.*?)</ul>', figure, re.DOTALL)
        assert len(curves) <= MOST_LINES
        if curves:
            assert curves == set(re.findall(r'class="curve (\w+)"', legend[1]))


def test_the_guarantee_and_a_cost_above_it_are_said(linear_facts):
    words = "".join(read(page(linear_facts)).words)
    assert linear_facts.promise.sentence in words.replace("\xa0", " ")
    low = dataclasses.replace(linear_facts.promise, bound=1e-9)
    assert "lies above the bound" in page(dataclasses.replace(linear_facts, promise=low))
    silent = dataclasses.replace(linear_facts.promise, bound=None, sentence="Nothing is proved: no.")
    assert "Nothing is proved: no." in page(dataclasses.replace(linear_facts, promise=silent))


def test_a_recipe_that_gave_no_answer_still_has_a_page(linear_facts):
    ours = dataclasses.replace(linear_facts.trials.ours, reason="ValueError: no")
    trials = dataclasses.replace(linear_facts.trials, methods=(ours, *linear_facts.trials.methods[1:]))
    text = page(dataclasses.replace(linear_facts, trials=trials))
    read(text)
    assert text.count("ValueError: no") >= 2
    assert re.findall(r"<h2>(.*?)</h2>", text) == SECTIONS


def test_without_shifts_and_numbers_the_page_says_so(linear_facts):
    promise = dataclasses.replace(linear_facts.promise, shifts=(), costs=())
    methods = tuple(dataclasses.replace(one, moved=()) for one in linear_facts.trials.methods)
    trials = dataclasses.replace(linear_facts.trials, methods=methods)
    text = page(dataclasses.replace(linear_facts, promise=promise, trials=trials))
    assert "What a shift would cost is not known" in text


def test_decisions_of_another_kind_are_drawn_without_outcomes(linear_facts):
    assert 'class="outcome"' in page(linear_facts)
    text = page(dataclasses.replace(linear_facts, cost=MeanCVaR()))
    assert 'class="outcome"' not in text
    assert "What to decide on outcome" in text


def test_what_was_only_found_is_not_called_a_bound(linear_facts):
    found = dataclasses.replace(linear_facts.promise, proved=False)
    text = page(dataclasses.replace(linear_facts, promise=found))
    assert "worst case found, not proved" in text
    assert "at most, in the worst case" not in text


def test_where_a_suspect_stands_is_said_by_the_lines_of_the_file(evil_facts):
    origin = dataclasses.replace(evil_facts.origin, lines=[k + 2 for k in range(80)])
    assert "<td>line 9</td>" in page(dataclasses.replace(evil_facts, origin=origin))
    assert "<td>row 7</td>" in page(evil_facts)


def test_elements_escape_what_is_not_markup():
    assert element("p", "<b>", title='"') == '<p title="&quot;">&lt;b&gt;</p>'
    assert element("p", Markup("<b></b>")) == "<p><b></b></p>"
    assert "&lt;x&gt;" in grid(["<x>"], [["<x>"]])
