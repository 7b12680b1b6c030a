"""Step-level action values by DPO: pairs of actions, and success of best of n.

  python -m experiments.papers.preferences.step_values
    --config=configs/worlds/logged_moves.py --checkpoint=runs/warm
    --out=pairs.jsonl
  python -m experiments.papers.preferences.step_values
    --config=configs/worlds/logged_moves.py --checkpoint=runs/warm
    --values=runs/q --out=pairs.jsonl

In every state of the training grids each action is followed by sampled episodes
of the policy, repeated from that state; rows of --out are pairs of actions
whose mean discounted outcomes differ. A model that DPO trains on them from the
policy has Q(s, a) = beta (log pi_values - log pi_policy) up to a number of s
only. Prints a JSON line for the grids of training and one for held-out ones:
success of the policy if it draws n actions in every turn and takes the one of
largest Q, exact from all probabilities; n = 1 is the policy. Without --values Q
is 0.
Source: "Enhancing Decision-Making for LLM Agents via Step-Level Q-Value
Models", reconstructed from the abstract: there values are of Monte Carlo tree
search.
"""

from collections.abc import Sequence
import json
from typing import Any

from absl import app, flags
import jax
import numpy as np

from experiments.flags import configuration, outputs
from experiments.pipelines import walks as walks_lib
from experiments.pipelines.walks import Walks
from rl_jax.measures.exploitability import log_probs
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks.environments.base import seed_of
from rl_jax.worlds import KeyDoor, RecordedEpisodes, RecordedMoves
from rl_jax.worlds.key_door_words import WORDS

_CONFIG = flags.DEFINE_string(
  'config',
  None,
  'Configuration whose task is RecordedMoves or RecordedEpisodes.',
  required=True,
)
_CHECKPOINT = flags.DEFINE_string(
  'checkpoint', None, 'Work directory.', required=True
)
flags.DEFINE_alias('policy', 'checkpoint')
_VALUES = flags.DEFINE_string('values', None, 'That of a model of DPO.')
_OUT = flags.DEFINE_string('out', None, 'JSONL of pairs.', required=True)
_SAMPLES = flags.DEFINE_integer(
  'samples', 128, 'Episodes after an action.', lower_bound=1
)
_TURNS = flags.DEFINE_integer('turns', 10, 'Of an episode.', lower_bound=1)
_GAMMA = flags.DEFINE_float(
  'gamma', 0.9, 'Per turn.', lower_bound=0.0, upper_bound=1.0
)
_SEED = flags.DEFINE_integer('seed', 0, 'Of the episodes.', lower_bound=0)
LETTERS = WORDS['letter']
SEEDS = {'train': 400, 'validation': 100}  # so many have all grids of size 3
DRAWS = (1, 2, 4, 8, 16)


def grids(task: RecordedMoves | RecordedEpisodes, split: str) -> list[Walks]:
  """The different grids of a split."""
  game = KeyDoor(
    size=task.size,
    seed=task.seed,
    num_train=task.num_train,
    num_held_out=max(task.num_validation, task.num_test),
  )
  count = SEEDS[split]
  if isinstance(task, RecordedEpisodes):
    count = min(count, task.num_grids)
  seeds = (seed_of(game.example(split, index)) for index in range(count))
  return [walks_lib.walks(x) for x in dict.fromkeys(map(game.layout, seeds))]


def move_log_probs(path: str, mesh: Any) -> Any:
  """A function: prompts -> log P(move | prompt, a move), f64[S, A]."""
  model, params, tokenizer = policy_lib.load_checkpoint(path, mesh, None)
  end = list(tokenizer.eos_ids[:1])
  actions = [tokenizer.encode(letter) + end for letter in LETTERS]

  def scored(prompts: Sequence[str]) -> np.ndarray:
    contexts = [tokenizer.encode(x) for x in prompts for _ in actions]
    rows = actions * len(prompts)
    logp_R = log_probs(params, model, contexts, rows, 1.0)
    logp_SA = logp_R.reshape(len(prompts), -1).astype(float)
    return logp_SA - np.logaddexp.reduce(logp_SA, axis=1, keepdims=True)

  return scored


def pairs(grid: Walks, value_SA: np.ndarray) -> list[dict[str, str]]:
  """Rows of a grid: every two actions of a state whose values differ."""
  rows = []
  for prompt, value_A, goal in zip(
    grid.prompts, value_SA, grid.goal_S, strict=True
  ):
    if goal:
      continue
    rows += [
      {'prompt': prompt, 'chosen': LETTERS[a], 'rejected': LETTERS[b]}
      for a, better in enumerate(value_A)
      for b, worse in enumerate(value_A)
      if better > worse
    ]
  return rows


def main(argv: Sequence[str]) -> None:
  """Loads, plays, writes, prints."""
  del argv
  outputs.check_file('out', _OUT.value)
  task = configuration.build(_CONFIG.value, 'sft').task
  if not isinstance(task, (RecordedMoves, RecordedEpisodes)):
    raise app.UsageError(
      f'--config: the task is {type(task).__name__}, neither RecordedMoves nor '
      'RecordedEpisodes'
    )
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  jax.set_mesh(mesh)
  policy = move_log_probs(_CHECKPOINT.value, mesh)
  rng, rows = np.random.default_rng(_SEED.value), []
  for grid, logp_SA in _scored(grids(task, 'train'), policy):
    value_SA = walks_lib.sampled_values(
      grid,
      np.exp(logp_SA),
      gamma=_GAMMA.value,
      turns=_TURNS.value,
      samples=_SAMPLES.value,
      rng=rng,
    )
    rows += pairs(grid, value_SA)
  outputs.write_rows(_OUT.value, rows)
  values = policy
  if _VALUES.value is not None:
    values = move_log_probs(_VALUES.value, mesh)
  for split in SEEDS:
    found = {
      'split': split,
      'grids': len(grids(task, split)),
      **best_of(grids(task, split), policy, values),
    }
    print(json.dumps(found))


def best_of(walks: list[Walks], policy: Any, values: Any) -> dict[str, float]:
  """Mean success over grids for each number of draws."""
  success = {n: [] for n in DRAWS}
  for (grid, own_SA), (_, other_SA) in zip(
    _scored(walks, policy), _scored(walks, values), strict=True
  ):
    for n in DRAWS:
      best_SA = walks_lib.best_of_n(np.exp(own_SA), other_SA - own_SA, n)
      success[n].append(walks_lib.success(grid, best_SA, _TURNS.value))
  return {f'best_of_{n}': float(np.mean(x)) for n, x in success.items()}


def _scored(walks: list[Walks], policy: Any) -> list[tuple[Walks, np.ndarray]]:
  """Grids with the log-probs of moves in their states; one call for all."""
  logp_SA = policy([prompt for grid in walks for prompt in grid.prompts])
  ends = np.cumsum([len(grid.prompts) for grid in walks])
  return list(zip(walks, np.split(logp_SA, ends[:-1]), strict=True))


if __name__ == '__main__':
  configuration.run(main)
