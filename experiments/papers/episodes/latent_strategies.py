"""Pairs that teach a policy the equilibrium over its own latent strategies.

  python -m experiments.papers.episodes.latent_strategies
    --config=configs/worlds/spoken_kuhn.py --checkpoint=runs/warm
    --out=pairs.jsonl

A step of LSPO: texts are drawn from the policy in every decision of the game;
the texts of a role are clustered by k-means on counts of letter pairs; CFR
solves the game in which a player chooses a cluster and its moves are as often
as among the samples; rows of --out are pairs of texts for DPO with beta 1, see
pipelines.latents. Prints one JSON line: nash_conv of the policy (exact) and of
the strategies found, legal_mass, the probability of texts that the game
understands, and the share of samples whose cluster is mostly of their move.

Source: latent space policy optimisation, reconstructed; configs/pipelines/lspo.
"""

from collections.abc import Sequence
import dataclasses
import json
from typing import Any

from absl import app, flags
import jax
import numpy as np

from experiments.flags import configuration, outputs
from experiments.pipelines import latents
from rl_jax.measures.exploitability import log_probs
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks.environments import information_states, regret
from rl_jax.worlds import SpokenMoves

_CONFIG = flags.DEFINE_string(
  'config', None, 'Configuration whose task is SpokenMoves.', required=True
)
_CHECKPOINT = flags.DEFINE_string(
  'checkpoint', None, 'Work directory of a run.', required=True
)
_OUT = flags.DEFINE_string('out', None, 'JSONL of pairs.', required=True)
_CLUSTERS = flags.DEFINE_integer(
  'clusters', 4, 'Latent strategies of a role, at most.', lower_bound=1
)
_SAMPLES = flags.DEFINE_integer(
  'samples', 256, 'Texts drawn in a decision.', lower_bound=2
)
_PAIRS = flags.DEFINE_integer(
  'pairs', 512, 'Pairs drawn in a decision.', lower_bound=1
)
_ITERATIONS = flags.DEFINE_integer('iterations', 300, 'Of CFR.', lower_bound=1)
_SEED = flags.DEFINE_integer(
  'seed', 0, 'Of samples, k-means and pairs.', lower_bound=0
)


@dataclasses.dataclass(frozen=True)
class Sizes:
  """Sizes of a step: latents of a role; texts and pairs of a decision; CFR."""

  clusters: int
  samples: int
  pairs: int
  iterations: int


def spoken(
  params: Any, model: Any, task: SpokenMoves, tokenizer: Any
) -> tuple[list[dict[str, float]], float]:
  """(P(text | prompt, understood) of each decision, mean mass of those)."""
  rows = [
    (n, text)
    for n, one in enumerate(task.situations())
    for name in one.names
    for text in task.texts(name)
  ]
  prompts = [task.prompt(one) for one in task.situations()]
  contexts = [tokenizer.encode(prompts[n]) for n, _ in rows]
  end = list(tokenizer.eos_ids[:1])
  actions = [tokenizer.encode(text) + end for _, text in rows]
  logp_R = log_probs(params, model, contexts, actions, 1.0)
  found = [{} for _ in prompts]
  for (n, text), p in zip(rows, np.exp(logp_R).tolist(), strict=True):
    found[n][text] = p
  mass = [sum(own.values()) for own in found]
  table = [
    {text: p / whole for text, p in own.items()}
    for own, whole in zip(found, mass, strict=True)
  ]
  return table, float(np.mean(mass))


def labelled(
  task: SpokenMoves, samples: list[list[str]], count: int, rng: Any
) -> tuple[list[np.ndarray], list[list[dict[str, float]]]]:
  """(labels of the samples of each decision, moves of the latents by player).

  Raises: ValueError if the legal moves of a player differ between decisions.
  """
  found, labels, moves = task.situations(), [np.zeros(0)] * len(samples), []
  for player in range(task.game.players):
    own = [n for n, one in enumerate(found) if one.player == player]
    legal = {tuple(sorted(found[n].names)) for n in own}
    if len(legal) > 1:
      raise ValueError(f'player {player} has decisions of {sorted(legal)}')
    texts = [text for n in own for text in samples[n]]
    label_N = latents.clusters(latents.letter_pairs(texts), count, rng)
    of_N = np.array([task.move(text) for text in texts])
    moves.append(
      [
        {
          name: float(np.mean(of_N[label_N == z] == name))
          for name in task.words
        }
        for z in range(label_N.max() + 1)
      ]
    )
    for n, part in zip(own, np.split(label_N, len(own)), strict=True):
      labels[n] = part
  return labels, moves


def nash_conv(
  task: SpokenMoves, probabilities: Sequence[dict[str, float]]
) -> float:
  """The exact NashConv of probabilities of moves in each decision."""
  table = {
    (one.player, one.key): row
    for one, row in zip(task.situations(), probabilities, strict=True)
  }
  return information_states.nash_conv(task.game, table)


def moves_of(task: SpokenMoves, texts: dict[str, float]) -> dict[str, float]:
  """Probabilities of moves from those of texts."""
  return {
    name: sum(p for text, p in texts.items() if task.move(text) == name)
    for name in task.words
  }


def step(
  task: SpokenMoves,
  table: list[dict[str, float]],
  sizes: Sizes,
  rng: np.random.Generator,
) -> tuple[list[dict[str, str]], dict[str, float]]:
  """(rows of pairs, metrics) of a policy with these probabilities of texts."""
  found = task.situations()
  samples = [
    rng.choice(list(own), size=sizes.samples, p=list(own.values())).tolist()
    for own in table
  ]
  labels, moves = labelled(task, samples, sizes.clusters, rng)
  solved = regret.average_strategies(task.game, moves, sizes.iterations)
  rows, played, pure = [], [], []
  for one, texts, label_N in zip(found, samples, labels, strict=True):
    strategy_Z, own = solved[one.player, one.key], moves[one.player]
    played.append(
      {
        name: sum(p * z[name] for p, z in zip(strategy_Z, own, strict=True))
        for name in one.names
      }
    )
    pure += [
      own[z][task.move(text)] > 0.5
      for z, text in zip(label_N, texts, strict=True)
    ]
    rows += [
      {'prompt': task.prompt(one), 'chosen': texts[i], 'rejected': texts[j]}
      for i, j in latents.pairs(label_N, strategy_Z, sizes.pairs, rng)
    ]
  return rows, {
    'nash_conv': nash_conv(task, [moves_of(task, own) for own in table]),
    'solved_nash_conv': nash_conv(task, played),
    'pure': float(np.mean(pure)),
    'pairs': len(rows),
  }


def main(argv: Sequence[str]) -> None:
  """Loads, draws, solves, writes."""
  del argv
  outputs.check_file('out', _OUT.value)
  task = configuration.build(_CONFIG.value, 'sft').task
  if not isinstance(task, SpokenMoves):
    raise app.UsageError(
      f'--config: the task is {type(task).__name__}, not SpokenMoves'
    )
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  jax.set_mesh(mesh)
  model, params, tokenizer = policy_lib.load_checkpoint(
    _CHECKPOINT.value, mesh, None
  )
  table, mass = spoken(params, model, task, tokenizer)
  sizes = Sizes(
    clusters=_CLUSTERS.value,
    samples=_SAMPLES.value,
    pairs=_PAIRS.value,
    iterations=_ITERATIONS.value,
  )
  rows, found = step(task, table, sizes, np.random.default_rng(_SEED.value))
  outputs.write_rows(_OUT.value, rows)
  print(json.dumps({**found, 'legal_mass': mass}))


if __name__ == '__main__':
  configuration.run(main)
