"""Configure Sphinx: `make docs` builds the site from these pages into docs/site."""

from __future__ import annotations

import genprobe

project = "genprobe"
copyright = "The genprobe authors"
version = release = genprobe.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["site"]
highlight_language = "text"
html_theme = "furo"
html_title = f"genprobe {release}"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"light_css_variables": {"font-stack--monospace": "ui-monospace, monospace"}}

myst_heading_anchors = 3  # makes [text](page.md#heading) work, as on code hosts
# Code hosts highlight ```csv, but Pygments has no lexer for it.
suppress_warnings = ["misc.highlighting_failure"]

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
