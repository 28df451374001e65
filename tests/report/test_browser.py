"""The page in a browser: nothing is complained about, cut off, overlapping or wider than the screen."""

import json
import re
import shutil
import subprocess

import pytest

from surefoot.report.page import page

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--allow-file-access-from-files", "--enable-logging=stderr", "--hide-scrollbars",
)  # fmt: skip
# The page runs no script, so another one looks at it through a frame and writes down what it sees.
LOOK = """<!DOCTYPE html><body style="margin:0"><iframe id="frame" src="report.html"
 style="width:%(width)dpx;height:900px;border:0"></iframe><pre id="seen"></pre><script>
frame.onload = () => {
  const page = frame.contentDocument, found = {cut: [], overlap: [], shown: 0};
  for (const picture of page.querySelectorAll("figure svg[role=img]")) {
    const edge = picture.getBoundingClientRect();
    if (!edge.width) continue;
    found.shown += 1;
    const boxes = [...picture.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
    boxes.forEach(([name, a], i) => {
      if (a.left < edge.left - 1 || a.right > edge.right + 1 || a.bottom > edge.bottom + 1) found.cut.push(name);
      for (const [other, b] of boxes.slice(i + 1))
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3)
          found.overlap.push(name + " / " + other);
    });
  }
  found.width = page.documentElement.scrollWidth;
  found.wide = [...page.querySelectorAll(".scroll")].filter(t => t.scrollWidth > t.clientWidth + 1)
    .map(t => t.textContent.slice(0, 30));
  found.paper = frame.contentWindow.getComputedStyle(page.body).backgroundColor;
  found.ink = frame.contentWindow.getComputedStyle(page.body).color;
  found.title = page.title;
  found.scripts = page.scripts.length;
  seen.textContent = JSON.stringify(found);
};
</script>"""

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium is installed: apt install chromium"
)


def browse(folder, *more):
    """Run the browser once, in a profile of its own; return what it printed."""
    profile = folder / "profile"
    run = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={profile}", "--virtual-time-budget=8000", *more],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in run.stderr, run.stderr
    return run.stdout


def seen(folder, width, *more):
    look = folder / "look.html"
    look.write_text(LOOK % {"width": width})
    out = browse(folder, *more, "--window-size=1200,1000", "--dump-dom", look.as_uri())
    return json.loads(re.search(r'<pre id="seen">(.*?)</pre>', out, re.DOTALL)[1])


@pytest.fixture(scope="module", params=["linear", "evil", "tiny", "huge"])
def folder(request, tmp_path_factory):
    place = tmp_path_factory.mktemp(f"browser-{request.param}")
    facts = request.getfixturevalue(f"{request.param}_facts")
    (place / "report.html").write_text(page(facts), encoding="utf-8")
    return place


@pytest.mark.parametrize("width", [390, 1000])
def test_nothing_is_cut_off_or_overlaps_on_a_telephone_and_on_a_desk(folder, width):
    found = seen(folder, width)
    assert found["cut"] == []
    assert found["overlap"] == []
    assert found["width"] <= width
    # Tiny and huge numbers have many digits: their table scrolls.
    assert found["wide"] == [] or "tiny" in folder.name or "huge" in folder.name
    assert found["shown"] >= 6
    assert found["scripts"] == 0
    assert found["title"].endswith("a Surefoot report")


def brightness(colour):
    return sum(map(int, re.findall(r"\d+", colour)[:3]))


@pytest.mark.parametrize(("scheme", "dark"), [(0, True), (1, False)])
def test_the_page_is_light_or_dark_as_the_reader_likes(folder, scheme, dark):
    found = seen(folder, 1000, f"--blink-settings=preferredColorScheme={scheme}")
    assert (brightness(found["paper"]) < brightness(found["ink"])) is dark


def test_it_prints_on_a4(folder):
    target = folder / "report.pdf"
    browse(
        folder, f"--print-to-pdf={target}", "--no-pdf-header-footer", (folder / "report.html").as_uri()
    )
    data = target.read_bytes()
    assert data.startswith(b"%PDF")
    sizes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", data)
    assert sizes
    assert all(round(float(width)) in (594, 595, 596) for width, _ in sizes)
    assert all(round(float(height)) in (841, 842, 843) for _, height in sizes)
    assert 2 <= len(sizes) <= 8
