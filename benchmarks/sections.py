"""Parts of hand-written pages that are generated: what stands between two markers."""


def put_section(path, name, text):
    """Write text between <!-- NAME: start --> and <!-- NAME: end --> of a page."""
    start, end = f"<!-- {name}: start -->", f"<!-- {name}: end -->"
    page = path.read_text()
    if page.count(start) != 1 or page.count(end) != 1:
        raise ValueError(f"{path.name} must have {start} and {end} once each.")
    head, rest = page.split(start)
    tail = rest.split(end)[1]
    path.write_text(f"{head}{start}\n{text}\n{end}{tail}")
    print(f"wrote {name} in {path}")
