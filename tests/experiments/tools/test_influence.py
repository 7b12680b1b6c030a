"""The command that measures influence, and the declared baselines."""

import pytest

from experiments.flags import configuration
from experiments.reports import influence_run
from experiments.tools import influence
from rl_jax.measures.influence import acts

FOUND = {
  'cos': 0.5,
  'ratio': 2.0,
  'tokens_stopped': 0.25,
  'rows_changed': 0.0,
  'groups_dropped': 0.0,
  'selection': 0.0,
  'pieces': {'credit.0.X': {'cos': 1.0, 'ratio': 1.0, 'tokens': 0.1}},
}
SAME = {**FOUND, 'cos': 1.0, 'ratio': 1.0}


def test_table():
  text = influence.table({'acts': True, **FOUND})
  assert '| the baseline | 0.5000 | 2.0000 | |' in text
  assert '| without credit.0.X | 1.0000 | 1.0000 | 10.0% |' in text
  assert 'acts: yes' in text and 'tokens_stopped: 25.0%' in text


def test_what_acts():
  """Any of five numbers; what pieces do to each other does not count."""
  assert acts(FOUND) and not acts(SAME)
  for name in ('rows_changed', 'groups_dropped', 'selection'):
    assert acts({**SAME, name: 0.01})
  assert not acts({**SAME, 'cos': 1 - 1e-5, 'ratio': 1 - 1e-5})


@pytest.mark.parametrize('name', configuration.names('configs.methods'))
def test_baselines_are_other_methods(name):
  """Each declared name exists; no method is compared with itself."""
  baseline = configuration.baseline_of(name)
  other = configuration.load_method(baseline)
  assert other != configuration.load_method(name)


def test_a_run_gets_its_baseline():
  """Filled in where influence is measured, and only there."""
  plain = configuration.build('bandit', 'tis')
  assert plain.diagnostics.baseline is None
  sets = ['diagnostics.influence_every=2']
  measured = configuration.build('bandit', 'tis', sets)
  expected = configuration.load_method('grpo@token_mean')
  assert measured.diagnostics.baseline == expected


@pytest.mark.slow
def test_dynamic_sampling_on_the_bandit():
  """Groups are dropped, clips do not act, a length penalty cannot."""
  config = influence_run.configured(
    configuration.build('bandit', 'dapo'), 'grpo', 2
  )
  found = influence_run.measure(config)
  assert found['acts'] and found['groups_dropped'] > 0.2
  assert found['tokens_stopped'] == found['selection'] == 0
  penalty = found['pieces']['shaping.0.OverlongPenalty']
  assert penalty['cos'] == pytest.approx(1.0, rel=1e-6)
  assert penalty['tokens'] == 0
