"""Decoding that follows the cosine with a goal, against the log-prob.

python -m experiments.papers.preferences.goal_steering --policy=runs/warm
  --model=runs/gc --goals=pairs.jsonl --out=steered.jsonl

The policy answers the first --limit validation prompts of the task of its run
by decoding.look_ahead, with h = the cosine of the last state of --model with
the goal, the mean of the last states of the chosen responses of --goals. A line
of JSON is printed and written for each weight: `outcome`, the share of right
responses, `cosine`, the mean of h of what was kept, and `logp` of it under the
policy. Weight 0 is beam search.
Source: the steering of "Learning Goal-Conditioned Representations for Language
Reward Models", 2024; the search is that of DeAL, as theirs is not known.
"""

from collections.abc import Iterator, Sequence
import json

from absl import flags
import jax
import jax.numpy as jnp
import numpy as np

from experiments.flags import configuration, outputs
from experiments.papers.decoding import searches
from rl_jax import decoding
from rl_jax.config import ExperimentConfig
from rl_jax.decoding.look_ahead import Heuristic
from rl_jax.decoding.stop import make_stop
from rl_jax.measures import goal_similarity, reward_heuristic, row_scores
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.runs import directory, reward_models
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import PreferenceRows, base

_POLICY = flags.DEFINE_string('policy', None, 'Work directory.', required=True)
_MODEL = flags.DEFINE_string('model', None, 'Work directory.', required=True)
_GOALS = flags.DEFINE_string('goals', None, 'Pairs, JSONL.', required=True)
_OUT = flags.DEFINE_string('out', None, 'JSONL of the lines.', required=True)
_WEIGHTS = flags.DEFINE_list('weights', ['0', '10'], 'Of h, in nats.')
_LIMIT = flags.DEFINE_integer('limit', 300, 'Prompts.', 1)
_BEAMS = flags.DEFINE_integer('beams', 2, 'Kept of a prompt.', 1)
_CANDIDATES = flags.DEFINE_integer('candidates', 4, 'Of a beam.', 1)
_TOKENS = flags.DEFINE_integer('tokens', 4, 'Looked ahead, at least 1.', 1)


def lines(
  policy: row_scores.Loaded,
  config: ExperimentConfig,
  heuristic: Heuristic,
  weights: Sequence[float],
) -> Iterator[dict[str, float]]:
  """A line for each weight. config: of the run of the policy."""
  model, params, tokenizer = policy
  rollout, stop = config.rollout, make_stop(tokenizer)
  prompts = PromptSet(
    config.task,
    'validation',
    tokenizer,
    rollout.max_prompt_tokens,
    rollout.overlong_prompt,
  )
  count = min(_LIMIT.value, len(prompts))
  examples, *arrays = prompts.batch(range(count))
  empty = decoding.start_trajectories(
    *arrays, group_size=1, max_response_tokens=rollout.max_response_tokens
  )
  sampling = decoding.SamplingConfig(eos_ids=tuple(tokenizer.eos_ids))
  inputs = reward_heuristic.prompts(empty)

  search = searches.make_search(
    model,
    empty,
    sampling,
    heuristic,
    inputs,
    lambda traj: heuristic(inputs, traj.response_BT, traj.length_B),
    beams=_BEAMS.value,
    candidates=_CANDIDATES.value,
  )
  for weight in weights:
    traj, cosine_B = search(params, weight, _TOKENS.value)
    rows = zip(
      examples,
      np.asarray(traj.response_BT),
      np.asarray(traj.length_B),
      strict=True,
    )
    right_B = jnp.array(
      [
        config.task.reward(example, stop.text(ids[:length]))[base.OUTCOME]
        for example, ids, length in rows
      ]
    )
    found = {'outcome': right_B, 'cosine': cosine_B}
    yield {'weight': weight, **searches.summary(traj, found)}


def main(argv: Sequence[str]) -> None:
  """Loads, decodes, prints."""
  del argv
  weights = searches.numbers(_WEIGHTS, float, 0.0)
  outputs.check_file('out', _OUT.value)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  jax.set_mesh(mesh)
  config = directory.saved_config(_POLICY.value)
  rollout = config.rollout
  policy = policy_lib.load_checkpoint(_POLICY.value, mesh)
  model, params, tokenizer = policy_lib.load_checkpoint(_MODEL.value, mesh)
  reward_models.check_tokens('--model', policy[2], tokenizer, model.vocab_size)
  states = row_scores.score_rows(
    (model, params, tokenizer),
    PreferenceRows(path=_GOALS.value),
    (rollout.max_prompt_tokens, rollout.max_response_tokens + 1),
    goal_similarity.token_states,
    64,
  )
  goal_D = goal_similarity.goal(states['state'], states['mask'] > 0)
  heuristic = goal_similarity.goal_heuristic(model, params, goal_D)
  found = list(lines(policy, config, heuristic, weights))
  outputs.write_rows(_OUT.value, found)
  for line in found:
    print(json.dumps(line))


if __name__ == '__main__':
  configuration.run(main)
