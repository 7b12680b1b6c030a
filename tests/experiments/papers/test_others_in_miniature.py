"""Recipes with episodes, a critic or recorded pairs run in miniature."""

import pytest

from experiments.papers import recipe as recipe_lib

ROWS = [
  (paper, row)
  for paper in recipe_lib.names()
  for row in recipe_lib.load(paper).rows
]


@pytest.mark.usefixtures('no_mesh_left')
def test_a_row_of_every_recipe_in_miniature(other_row, run_quickly):
  """Rows, prompts, rewards, the update, evaluation and table of the recipe."""
  run_quickly(*other_row)


@pytest.mark.slow
@pytest.mark.usefixtures('no_mesh_left')
@pytest.mark.parametrize(('paper', 'row'), ROWS)
def test_all_rows_in_miniature(paper, row, run_in_miniature, tmp_path):
  """The model's architecture, the decoding and two optimizer steps as well."""
  run_in_miniature(paper, row, tmp_path)
