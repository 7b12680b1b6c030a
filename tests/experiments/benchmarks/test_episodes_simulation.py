"""The simulation of episodes is built on the rule, and its table stays."""

import pytest

from experiments.benchmarks import episodes_simulation as simulation
from experiments.benchmarks.episodes_simulation import CELLS, Load, Policy


@pytest.fixture(name='cell', scope='module')
def _cell():
  """(data, seconds in step) of 32 x 8 rows, calls of five decoded turns."""
  load, seven = Load(), CELLS['7B']
  mean = 5 * load.tokens * (seven.base + seven.row * load.rows)
  data = simulation.draw(load, load.rows * 44, 'lognormal', mean, False)
  return load, data, simulation.lockstep(seven, load, data, 10)


@pytest.mark.parametrize(
  ('policy', 'busy', 'speed'),
  [
    (Policy('fixed', 0), 0.44, 3.45),
    (Policy('fixed', 1), 0.57, 5.38),
    (Policy('newest', 1), 0.55, 5.42),
    (Policy('arrival', 3), 0.98, 11.53),
    (Policy('dropping', 1), 1.00, 12.45),
  ],
)
def test_cells_of_a_7b_model(cell, policy, busy, speed):
  """Two decimals, as an earlier simulation without the rule gave them."""
  load, data, reference = cell
  found = simulation.slots(CELLS['7B'], load, data, 10, policy)
  assert found['busy'] == pytest.approx(busy, abs=0.006)
  assert reference['time'] / found['time'] == pytest.approx(speed, abs=0.006)
  if policy.rule != 'dropping':
    assert found['lag'] <= policy.staleness and found['dropped'] == 0


def test_calls_cost_nothing_where_nothing_waits():
  """One group that samples by itself: the steps, and nothing else."""
  load = Load(groups=1, group=1, turns=1, tokens=8, spread=0, observation=0)
  cell = simulation.Cell(base=1.0, row=0.5, feed=0.0, train=0.25)
  data = simulation.draw(load, 20, 'constant', 0.0, False)
  found = simulation.slots(cell, load, data, 3, Policy('fixed', 0))
  assert found['time'] == 3 * (8 * 1.5 + 8 * 0.25) and found['busy'] == 1.0
