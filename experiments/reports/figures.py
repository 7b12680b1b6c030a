"""Figures of matplotlib, which is imported when one is drawn."""

from typing import Any

from rl_jax.optional import require


def new_figure(width: float, height: float) -> Any:
  """A matplotlib figure of so many inches, which needs no display."""
  figure = require('matplotlib.figure', 'a figure').Figure(
    figsize=(width, height), layout='constrained'
  )
  backend = require('matplotlib.backends.backend_agg', 'a figure')
  backend.FigureCanvasAgg(figure)
  return figure


def ticker() -> Any:
  """The module matplotlib.ticker."""
  return require('matplotlib.ticker', 'a figure')
