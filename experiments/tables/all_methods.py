"""The table of all methods: what each is, what it claims, and what was seen.

`python -m experiments.list_methods --markdown` writes it to FILE, and the
documentation site shows the same rows.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import pathlib
import re

from experiments.flags import configuration
from experiments.papers.worlds import landed, profile, where
from experiments.tables import cells as cells_lib
from experiments.tables import methods
from rl_jax.method import Method
from rl_jax.pieces.policies import Frozen

FILE = pathlib.Path('configs', 'methods', 'README.md')
COMMAND = 'python -m experiments.list_methods --markdown'
HEADER = (
  *('method', 'what it is', 'change', 'pieces', 'paper', 'evidence'),
  *('acts in', 'claimed and seen'),
)
HEAD = f"""# Methods

Written by `{COMMAND}` from the docstrings beside it and the
results in `experiments/papers`.

*evidence* says where the formula was checked. *acts in* is the world, a
configuration of `configs/`, in which a test shows that the method changes the
gradient or the rollouts. *claimed and seen* has a claim of the paper, the
difference that was measured in a world with its paired 95% over seeds, and the
verdict. The difference is to what the claim names, else to GRPO (in preferences
to DPO; in proxy of RPO to DPO, of RTO and r_to_q to PPO). `seen` is separated
in the claimed direction, `contrary` in the other; where the paper claims
nothing of the kind, the verdict is `higher`, `lower` or `not separated`. Two
seeds see nothing, and one has no interval. In `brief` all methods have one
learning rate, the best of those tuned in `stale`. Of methods that were not
measured, the headline of the paper is given.

"""


def page() -> str:
  """FILE: one row for each method."""
  lines = [f'| {" | ".join(HEADER)} |', '|---' * len(HEADER) + '|']
  for name, cells in table().items():
    texts = (cell.replace('|', r'\|') for cell in cells)
    lines.append(f'| [{name}]({name}.py) | {" | ".join(texts)} |')
  return HEAD + '\n'.join(lines) + '\n'


def table() -> dict[str, list[str]]:
  """Method -> the cells after its name, as HEADER has them."""
  seen = landed.seen()
  return {
    name: _cells(name, seen.get(name, ()))
    for name in configuration.names(methods.PACKAGE)
  }


def _cells(name: str, seen: Sequence[profile.Seen]) -> list[str]:
  found = methods.parts(name)
  classes = ', '.join(_classes(configuration.load_method(name)))
  evidence = found['Evidence'].split('(')[0].rstrip('. ')
  return [
    methods.summary(name),
    found['Change'],
    classes,
    found['Paper'],
    evidence,
    where.named(name),
    '<br>'.join(map(verdict, seen)) or _unmeasured(name, found),
  ]


def verdict(one: profile.Seen) -> str:
  """A claim with what was measured."""
  effect, interval, _ = cells_lib.comparison_text(one.comparison)
  seeds = f'{one.seeds} seed' + 's' * (one.seeds != 1)
  measured = f'{one.metric} {effect} {interval}'.rstrip()
  # The method that a claim names, and its world.
  claim = re.sub(
    r'(?<=\(against )[a-z][\w@]*|(?<= in )\w+(?=\)$)', r'`\g<0>`', one.claim
  )
  return f'**{one.verdict}**: {claim}; `{one.world}`, {measured}, {seeds}'


def _unmeasured(name: str, found: Mapping[str, str]) -> str:
  if name in landed.BASELINES:
    return f'{landed.BASELINE} of `{landed.BASELINES[name]}`'
  return f'{landed.NOT_MEASURED}; headline: {found["Headline"]}'


def _classes(method: Method) -> list[str]:
  """Links to the files of the pieces, in the order of the method's fields."""
  found = []
  for field in dataclasses.fields(method):
    value = getattr(method, field.name)
    for piece in value if isinstance(value, tuple) else (value,):
      if piece is not None and piece != Frozen():
        path = type(piece).__module__.replace('.', '/')
        found.append(f'[{type(piece).__name__}](../../{path}.py)')
  return found
