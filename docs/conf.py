"""Configuration of the documentation site; `make docs` builds it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import generate  # noqa: E402

import rl_jax  # noqa: E402

project = 'rl_jax'
author = 'The rl_jax authors'
release = rl_jax.__version__
extensions = ['myst_parser', 'sphinx.ext.viewcode']
myst_enable_extensions = ['colon_fence', 'deflist']
myst_heading_anchors = 3
html_theme = 'furo'
html_title = f'rl_jax {release}'
html_static_path = ['_static']
exclude_patterns = ['_build', 'notebooks']


def setup(app):
  """Writes the generated pages before Sphinx reads its sources."""
  app.connect('builder-inited', lambda _: generate.write())
