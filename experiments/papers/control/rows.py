"""The rows of the page, by the name on the command line."""

from experiments.papers.control import (
  aligned,
  beacons,
  bilevel,
  dpt,
  exploitation,
  guided,
  histories,
  lamo,
  masked,
  maze,
  no_regret,
  protected,
  relief,
  search,
  slippery,
  wanted,
)
from experiments.papers.control.claims import Row

ROWS: dict[str, Row] = {
  'dpt': dpt.ROW,
  'lhf': histories.ROW,
  'exploitation': exploitation.ROW,
  'evolve': guided.ROW,
  'regret': no_regret.ROW,
  'prdc': maze.PRDC,
  'a2pr': maze.A2PR,
  'famo2o': maze.FAMO2O,
  'famo2o_online': maze.FAMO2O_ONLINE,
  'search': search.ROW,
  'parl': bilevel.ROW,
  'alignment': aligned.ROW,
  'dr_rpo': slippery.ROW,
  'protected': protected.ROW,
  'beacons': beacons.ROW,
  'camel': masked.ROW,
  'oppo': wanted.ROW,
  'relief': relief.ROW,
  'lamo': lamo.ROW,
}
