"""Worlds and claims of Aviary: sums with and without a calculator.

Policies begin with runs/aviary_start, a clone of recorded episodes, whose
command is in README.md; START has what it does on the problems of the runs'
evaluations. Environments answer on the host. Needs the extra 'aviary', and
`excerpt` of these runs --import=configs.environments.word_sums.
"""

from experiments.papers.episodes.cases import OUTCOME, Claim, World

_SUMS = {
  'model.path': 'runs/aviary_start',
  'evaluation.every': 30,
}
WORLDS = {
  'sums_tool': World('aviary_calculator', ('expert_iteration', 'grpo'), _SUMS),
  'sums_alone': World(
    'aviary_calculator',
    ('expert_iteration',),
    {**_SUMS, 'task.options': "{'tools': 'submit'}"},
  ),
}
# Of drawn and of greedy episodes on held-out problems, after training.
HELD_OUT, GREEDY = 'held_out/outcome', 'greedy/outcome'
START = {HELD_OUT: 0.096, GREEDY: 0.359}
_ITERATED, _GRPO = ('sums_tool', 'expert_iteration'), ('sums_tool', 'grpo')
_SOURCE = 'M97 Aviary'
CLAIMS = (
  *(
    Claim(
      _SOURCE,
      'expert iteration with the tool above without',
      _ITERATED,
      ('sums_alone', 'expert_iteration'),
      metric,
    )
    for metric in (OUTCOME, HELD_OUT, GREEDY)
  ),
  *(
    Claim(_SOURCE, 'above its start', one, START[metric], metric)
    for one in (_ITERATED, _GRPO)
    for metric in START
  ),
  *(
    Claim(_SOURCE, 'expert iteration below GRPO', _ITERATED, _GRPO, metric, -1)
    for metric in (OUTCOME, HELD_OUT)
  ),
  *(
    Claim(
      _SOURCE,
      'majority of eight above a single sample',
      one,
      1.0,
      f'held_out/majority per {HELD_OUT}',
    )
    for one in (_ITERATED, _GRPO)
  ),
)
