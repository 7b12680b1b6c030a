"""RLUF: models of helpfulness, of reactions and of safety, and their weights.

A reward model learns 300 comparisons of helpfulness, a second one 2,000
reactions to single texts, which are frequent after a letter at the end that
helps nobody, and a third one 2,000 labels of safety, a tenth of them wrong: one
motif of six does harm. Policies then learn 100 iterations on helpfulness and 0,
0.3, 1 or 3 times the probability of a reaction, without safety (`none`, `low`,
`middle`, `high`) and with the probability of safety beside it (`safe_none`,
...), which has weight 1.
Command: python -m experiments.pipeline --pipeline=rluf --workdir=runs/rluf
Cost: about six minutes of a CPU core.
Claims: more samples end with the letter at weight 3 than at weight 0, and their
  gold score is lower (without safety); with the model of safety more samples
  are safe than without it, at weight 0 and at weight 3, and more end with the
  letter at weight 3 than at weight 0.
Expected: see experiments/papers/worlds/README.md.
Source: "Reinforcement Learning from User Feedback", 2025, reconstructed: the
  abstract has the three rewards and their sum; sizes and weights are ours.
"""

from collections.abc import Iterable
from typing import Any

from experiments.pipelines.stages import Stage

_CONFIG = ('--config=configs/worlds/loved_motifs.py', '--workdir={out}')
WEIGHTS = {'none': 0.0, 'low': 0.3, 'middle': 1.0, 'high': 3.0}


SAFETY = {'': 0.0, 'safe_': 1.0}  # weights of the model of safety


def _binary(name: str, *flags: str) -> Stage:
  """A model of labels of single texts."""
  return Stage(name=name, flags=(*_CONFIG, '--method=reaction_model', *flags))


def _policy(name: str, reaction: float, safety: float) -> Stage:
  """GRPO on the weighted sum; a model of weight 0 is not read."""
  parts = {'helpful': 1.0, 'love': reaction}
  sources = {'helpful': 'helpful', 'love': 'reaction'}
  if safety:
    parts['safe'], sources['safe'] = safety, 'safety'
  logits = tuple(part for part in parts if part != 'helpful')
  return Stage(
    name=name,
    flags=(
      *(*_CONFIG, '--method=rluf'),
      f'--set=method.shaping.GatedSum.components={_texts(parts)}',
      f'--set=method.shaping.GatedSum.logits={_texts(logits)}',
      f'--set=method.shaping.GatedSum.weights={_joined(parts.values())}',
      *(
        f"--add=reward_models=RewardModel(name='{part}',path='{{{source}}}',"
        'weight=0.0)'
        for part, source in sources.items()
      ),
    ),
  )


def _texts(names: Iterable[str]) -> str:
  return _joined(f"'{name}'" for name in names)


def _joined(parts: Iterable[Any]) -> str:
  """A tuple as it is written on the command line."""
  return f'({",".join(map(str, parts))},)'


def get_stages() -> tuple[Stage, ...]:
  """Three models, and a policy for each pair of weights."""
  models = (
    Stage(
      name='helpful',
      flags=(
        *('--config=configs/worlds/proxy.py', '--workdir={out}'),
        '--method=reward_model',
      ),
    ),
    _binary('reaction'),
    _binary('safety', '--set=task=HarmlessMotifs(num_train=2000)'),
  )
  policies = (
    _policy(prefix + name, reaction, safety)
    for prefix, safety in SAFETY.items()
    for name, reaction in WEIGHTS.items()
  )
  return (*models, *policies)
