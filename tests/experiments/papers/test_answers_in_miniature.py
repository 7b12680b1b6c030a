"""Recipes with groups of answers run in miniature."""

import pytest


@pytest.mark.usefixtures('no_mesh_left')
def test_a_row_of_every_recipe_in_miniature(answering_row, run_quickly):
  """Rows, prompts, rewards, the update, evaluation and table of the recipe."""
  run_quickly(*answering_row)
