"""The rows of the page, by the name on the command line."""

from experiments.papers.control import (
  beacons,
  bilevel,
  dpt,
  exploitation,
  guided,
  histories,
  lamo,
  lamo_llm,
  masked,
  maze,
  no_regret,
  protected,
  relief,
  search,
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
  'elites': search.ELITES_ROW,
  'parl': bilevel.ROW,
  'parl_grid': bilevel.GRID_ROW,
  'protected': protected.ROW,
  'beacons': beacons.ROW,
  'camel': masked.ROW,
  'oppo': wanted.ROW,
  'relief': relief.ROW,
  'lamo': lamo.ROW,
  'lamo_llm': lamo_llm.ROW,
}
