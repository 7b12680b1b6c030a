"""Worlds and claims of bargaining: PPDPP, EPO, ILQL.

Policies begin with runs/haggling_start, a clone of scripted buyers, whose
command is in README.md; those of recorded dialogues with random weights.
"""

from experiments.papers.episodes.cases import RIGHT, WEIGHTS, Claim, World

HAGGLING = {'model.path': 'runs/haggling_start', 'iterations': 100}
SCORES = {**HAGGLING, WEIGHTS: "{'score': 1.0}"}
# Dialogues of scripted buyers, then played with held-out sellers.
RECORDED = {'optimizer.learning_rate': 3e-3, 'evaluation.every': 300}
TILT = 'evaluation.transforms.ActionValueTilt.'
WORLDS = {
  'haggling': World('haggling', ('reinforce', 'ppdpp'), HAGGLING),
  'haggling_scores': World('haggling', ('reinforce', 'epo'), SCORES),
  'haggling_start': World(
    'haggling',
    ('reinforce',),
    {**HAGGLING, 'optimizer.learning_rate': 0.0, 'iterations': 20},
  ),
  **{
    f'recorded_{percent}': World(
      'recorded_haggling',
      ('sft', 'filtered_bc', 'ilql'),
      {**RECORDED, 'task.good': percent / 100},
    )
    for percent in (20, 80)
  },
  'recorded_unclipped': World(
    'recorded_haggling',
    ('ilql',),
    {**RECORDED, 'task.good': 0.8, TILT + 'beta': 4.0, TILT + 'clip': None},
  ),
}
RATIO, OPEN = 'final/ratio', 'final/open'  # sale to list; turns without a deal
_CLONE = ('haggling_start', 'reinforce')
CLAIMS = (
  *(
    Claim('M93 PPDPP', text, ('haggling', 'ppdpp'), other, metric, sign)
    for text, other, metric, sign in (
      ('more deals than its SFT start', _CLONE, RIGHT, 1),
      ('a higher sale-to-list ratio than its start', _CLONE, RATIO, 1),
      ('fewer turns without a deal', _CLONE, OPEN, -1),
      ('more deals', ('haggling', 'reinforce'), RIGHT, 1),
      ('a higher ratio', ('haggling', 'reinforce'), RATIO, 1),
    )
  ),
  *(
    Claim('A78 EPO', text, ('haggling_scores', 'epo'), other, metric)
    for text, other, metric in (
      ('more deals than its SFT start', _CLONE, RIGHT),
      ('a higher sale-to-list ratio than its start', _CLONE, RATIO),
      ('more deals', ('haggling_scores', 'reinforce'), RIGHT),
      ('a higher ratio', ('haggling_scores', 'reinforce'), RATIO),
    )
  ),
  *(
    Claim(
      'M75 ILQL',
      f'above {name} on held-out sellers, {percent}% good dialogues',
      (f'recorded_{percent}', 'ilql'),
      (f'recorded_{percent}', method),
      metric,
    )
    for percent in (20, 80)
    for name, method in (('cloning', 'sft'), ('filtered BC', 'filtered_bc'))
    for metric in ('held_out/mean', 'greedy/mean')
  ),
  *(
    Claim(
      'M75 ILQL',
      'above cloning with beta 4 and no clip, 80% good dialogues',
      ('recorded_unclipped', 'ilql'),
      ('recorded_80', 'sft'),
      metric,
    )
    for metric in ('held_out/mean', 'greedy/mean')
  ),
)
