"""How the documentation is built: ``make docs``, warnings are errors."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

import surefoot

project = "Surefoot"
author = "The Surefoot developers"
copyright = author
version = release = surefoot.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "printed",
]
exclude_patterns = ["_printed"]
templates_path = ["_templates"]
# Attributes of several classes share a name; how-to pages may skip a level of headings.
suppress_warnings = ["ref.python", "myst.header"]
nitpicky = False  # types of NumPy and scikit-learn have no pages here

# Pages in Markdown.
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# One page for each public name.
autosummary_generate = True
autosummary_context = {"top_level": [name for name in surefoot.__all__ if name != "__version__"]}
autodoc_typehints = "none"  # signatures stay readable; docstrings say what is allowed
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False  # the page of a class lists them by itself
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "download_all_examples": False,
    "min_reported_time": 5,
    "thumbnail_size": (640, 300),
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "pydata_sphinx_theme"
html_title = "Surefoot"
html_static_path = ["_static"]
html_css_files = ["surefoot.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "github_url": "https://github.com/surefoot/surefoot",
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {page: [] for page in ("index", "install", "tutorial", "choose")}
