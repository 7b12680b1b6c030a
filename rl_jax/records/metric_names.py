"""The first words of the names of metrics: WORD/NAME."""

from typing import Any

WORDS = (
  *('batch', 'episode', 'evaluation', 'influence', 'policy', 'preference'),
  *('reward', 'rollout', 'time', 'train', 'value'),
)


def check_stopping(name: str | None, every: int, method: Any) -> None:
  """Raises ValueError if no row of a run could have the metric.

  What follows the word is known when the first row is; metrics of pieces that
  are not of rl_jax may have any name. every: iterations between evaluations.
  """
  if name is None:
    return
  word = name.partition('/')[0]
  modules = {type(piece).__module__ for _, piece in method.pieces()}
  closed = all(module.startswith('rl_jax.') for module in modules)
  if word not in WORDS and closed:
    raise ValueError(
      f'stopping.metric = {name!r}: metrics begin with one of '
      f'{", ".join(WORDS)}, and a slash'
    )
  if word == 'evaluation' and not every:
    raise ValueError(
      f'stopping.metric = {name!r}, but evaluation.every = 0: never evaluated'
    )
