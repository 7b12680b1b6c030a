"""The page of control: what it says follows from its results."""

import json

import jax
import pytest

from experiments.papers.control import page, policies
from experiments.papers.control.claims import Claim
from experiments.papers.control.rows import ROWS


def test_page_has_the_tables_of_the_results():
  """`--update` would change nothing."""
  text = (page.HERE / 'README.md').read_text()
  assert page.with_tables(text) == text


@pytest.mark.parametrize(
  'found', page.results(), ids=lambda found: found['row']
)
def test_verdicts_follow_from_the_values(found):
  """Those that are committed are those of today's claims, of all seeds.

  The row of one seed has values of test episodes, the same for its claims.
  """
  row = ROWS[found['row']]
  expected = {x.text: x.verdict(found['values']) for x in row.claims}
  assert json.loads(json.dumps(found['verdicts'])) == expected
  assert found['seeds'] == row.seeds
  assert row.seeds == (1 if found['row'] == 'lamo_llm' else 5)
  for arms in found['values'].values():
    if row.seeds > 1:
      assert {len(value_S) for value_S in arms.values()} == {row.seeds}


def test_every_row_of_arms_has_the_greedy_player():
  """It exposes weak claims at short horizons."""
  for found in page.results():
    for metric, arms in found['values'].items():
      if 'arms' in metric:
        assert 'greedy after one pull each' in arms, found['row']


@pytest.mark.parametrize(
  'name', ['relief', 'lamo', 'famo2o_online', 'parl_grid']
)
def test_rows_measure_what_their_claims_name(name, monkeypatch):
  """The program of five seeds is traced, and has every metric and arm."""
  monkeypatch.setattr(
    policies,
    'over_seeds',
    lambda measure, key_S: jax.eval_shape(jax.vmap(measure), key_S),
  )
  keys = jax.random.split(jax.random.key(0), 5)
  found = ROWS[name].measure(keys, 1.0)
  for claim in ROWS[name].claims:
    assert {claim.low, claim.high} <= set(found[claim.metric])
  for arms in found.values():
    assert {x.shape for x in arms.values()} == {(5,)}


def test_verdicts_by_hand():
  """The sign of the interval of the paired difference decides."""
  claim = Claim('a is below b', 'm', 'a', 'b')
  low, high, wide = [1.0, 1.1, 0.9], [2.0, 2.2, 1.9], [0.1, 3.0, 1.0]
  verdict = claim.verdict({'m': {'a': low, 'b': high}})
  assert verdict.startswith('seen (margin 1.03 [')
  assert claim.verdict({'m': {'a': high, 'b': low}}).startswith('contrary')
  assert claim.verdict({'m': {'a': low, 'b': wide}}).startswith('not seen')
