"""Verified rows of the worlds that the project ships, with random weights."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flags import configuration
from experiments.papers.worlds import where
from rl_jax.data.recorded import RecordedSet, RecordedSource, recorded_rows
from rl_jax.decoding.rounding import rounded
from rl_jax.judging.verifiers import token_inputs
from rl_jax.models import params as params_lib
from rl_jax.models.transformer import ModelConfig
from rl_jax.pieces.statistics import action_values
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.windows import in_window
from rl_jax.runs.policy import task_tokenizer
from rl_jax.runs.scanned import prompts as scanned_prompts
from rl_jax.tasks import base
from rl_jax.tasks.environments.base import is_environment, seed_of
from rl_jax.types import ENVIRONMENT, FORCED, POLICY, Turns
from rl_jax.worlds import PlannedKeyDoor

GROUPS, SAMPLES, TOKENS, TURNS = 6, 8, 28, 9
PAIRS = 18


def chain_texts(task, examples):
  """[N, G] of a teacher with guesses and slips.

  All of the first prompt are right, and one of the second.
  """
  sure = dataclasses.replace(task, slips=0.0, rechecks=0.0)

  def wrong(e):
    return str((int(e.answer) + 1) % 10)

  return [
    dataclasses.replace(task if i else sure, seed=s).target(e)
    if i != 1
    else (wrong(e) if s else sure.target(e))
    for i, e in enumerate(examples)
    for s in range(SAMPLES)
  ]


def _digits(rng, count):
  return ''.join(map(str, rng.integers(0, 6, count)))


# World -> a response, drawn at random; the first of a prompt is its target.
DRAWN = {
  'bandit': lambda rng, task, example: task.alphabet[8 + rng.integers(8)],
  # Four digits are a box, more or fewer are none.
  'boxes': lambda rng, task, example: _digits(rng, rng.choice([3, 4, 4, 4, 5])),
  # Workings of several lengths before the call, or an answer by hand.
  'calculator': lambda rng, task, example: dataclasses.replace(
    task, seed=int(rng.integers(99))
  ).target(example),
  'coverage': lambda rng, task, example: ''.join(rng.choice(list('NESW'), 12)),
  'function_calls': lambda rng, task, example: (
    task.example('train', int(rng.integers(99))).answer
  ),
  'multiple_choice': lambda rng, task, example: ''.join(
    rng.permutation(list(task.letters))[: rng.integers(1, 5)]
  ),
  'points': lambda rng, task, example: ','.join(
    _digits(rng, 2) for _ in range(rng.integers(1, 4))
  ),
}


def texts_of(name, task, examples):
  """[N, G] responses of a world as one list."""
  if name not in DRAWN:
    return chain_texts(task, examples)
  rng = np.random.default_rng(0)
  return [
    DRAWN[name](rng, task, e) if s and i else task.target(e)
    for i, e in enumerate(examples)
    for s in range(SAMPLES)
  ]


@functools.cache
def world(name, mismatched=False):
  """(model, weights that sampled, weights now, named policies, the sampler's,
  verified rows).

  Rows of the world's own task, by its own verifier; a few are cut. The weights
  are random: what is measured is what the method makes of the rows. mismatched:
  with a row for the response to another prompt, as KTO wants it.
  """
  config = configuration.build(name, 'reinforce')
  task = config.task
  if name == 'preferences':
    tokenizer = task_tokenizer(task)
    return with_weights(
      name, task, tokenizer, recorded(config, tokenizer, mismatched)
    )
  if is_environment(task):
    tokenizer = task_tokenizer(task)
    return with_weights(name, task, tokenizer, walks(config, tokenizer))
  if name not in DRAWN:
    task = dataclasses.replace(
      task,
      min_operations=2,
      max_operations=min(4, task.max_operations),
      guesses=0.4,
      slips=0.2,
      rechecks=0.2,
    )
  tokenizer = task_tokenizer(task)
  longest = config.rollout.max_prompt_tokens
  prompts = PromptSet(task, 'train', tokenizer, longest)
  examples, *arrays = prompts.batch(range(GROUPS))
  texts = texts_of(name, task, examples)
  rows = list(zip(np.repeat(examples, SAMPLES), texts, strict=True))
  targets = [[*tokenizer.encode(text), 1] for text in texts]
  written = [(base.RecordedResponse(), x[:TOKENS], True) for x in targets]
  groups = [written[n : n + SAMPLES] for n in range(0, len(rows), SAMPLES)]
  traj = recorded_rows(tuple(arrays), groups, TOKENS)
  finished = [len(ids) <= TOKENS for ids in targets]
  rewards = [
    task.reward(e, text if done else '')
    for (e, text), done in zip(rows, finished, strict=True)
  ]
  components = {
    n: np.asarray([r[n] for r in rewards], np.float32) for n in rewards[0]
  }
  traj = traj.replace(
    finished_B=np.asarray(finished),
    rewards=components,
    reward_B=base.combine(components, task.reward_weights),
    extras={},
  )
  traj = jax.tree.map(jnp.asarray, traj)
  if name == 'modes':
    traj = with_forced(traj)
  if name == 'windows':
    traj = in_window(
      traj,
      given_B=jnp.where(traj.length_B > 16, 16, 0),
      open_B=jnp.ones_like(traj.finished_B),
      waits_B=~traj.finished_B,
      version_BT=jnp.zeros_like(traj.kind_BT),
    )
  return with_weights(name, task, tokenizer, traj)


def recorded(config, tokenizer, mismatched):
  """Pairs of the data; in the last third of the groups they count as samples.

  The data of the world lack aspects and labels of steps: these are drawn.
  """
  rollout, rng = config.rollout, np.random.default_rng(0)
  limits = dict(max_response_tokens=rollout.max_response_tokens)
  data = RecordedSet(
    config.task, 'train', tokenizer, rollout.max_prompt_tokens, **limits
  )
  source = RecordedSource(data, None, None, None, PAIRS, mismatched)
  traj, _ = source.read(np.arange(PAIRS), 0)
  B, T = traj.response_BT.shape
  sampled_B = traj.row_id_B2[:, 0] >= PAIRS * 2 // 3
  extras = dict(traj.extras)
  extras['chosen_B'] = np.where(sampled_B, -1.0, extras['chosen_B'])
  extras['logged_B'] = (~sampled_B).astype(np.float32)
  last_BT = np.arange(T)[None] == traj.length_B[:, None] - 1
  extras |= {
    'aspect_label_BA': rng.uniform(size=(B, 2)),
    'step_label_BT': np.where(last_BT, traj.reward_B[:, None], -1.0),
    'semantic_distance_B': rng.uniform(0.0, 2.0, B),
  }
  traj = traj.replace(
    extras={n: np.asarray(x, np.float32) for n, x in extras.items()}
  )
  return jax.tree.map(jnp.asarray, traj)


def walked(task, tokenizer, example, rng):
  """(tokens with their kinds and turns, turns, components, done), one row."""
  flags = ['']
  if isinstance(task, PlannedKeyDoor):
    flags = ['!K', '~K', '!D', '~G']
  right, walk = task.actions(example), task.make(example)
  reply, written, turns, total = walk.reset(seed_of(example)), [], [], {}
  for k in range(TURNS):
    sure = rng.random() < 2 / 3
    word = right[0] if sure else rng.choice(task.actions(example))
    right = right[1:] if sure and len(right) > 1 else right
    text, state = rng.choice(flags) + word, reply.state
    written += [(i, POLICY, k) for i in tokenizer.encode(text)]
    reply = walk.step(text)
    for name, x in reply.rewards.items():
      total[name] = total.get(name, 0.0) + x
    earned = base.combine(reply.rewards, task.reward_weights)
    spent = earned, reply.calls, reply.duration
    turns.append((spent, ('state', state), ('action', reply.action)))
    if reply.done:
      break
    if k + 1 < TURNS:
      said = tokenizer.encode(reply.observation)
      written += [(i, ENVIRONMENT, k + 1) for i in said]
  return written, turns, total, reply.done


def walks(config, tokenizer):
  """Episodes of a walker that errs in a third of its turns."""
  task, rng = config.task, np.random.default_rng(0)
  prompts = scanned_prompts.encode(config, tokenizer, count=GROUPS)
  turn_tokens = config.rollout.turns.max_turn_tokens
  traj = prompts.start(SAMPLES, TURNS * (turn_tokens + 5), 0, 0)
  B, T = traj.response_BT.shape
  token_BT3 = np.tile(np.array([0, 0, -1], np.int32), (B, T, 1))
  spent_BK3 = np.zeros((B, TURNS, 3), np.float32)
  known_BK2 = np.full((B, TURNS, 2), -1, np.int32)
  components, done, numbers = [], [], {}
  for row in range(B):
    if row % SAMPLES == 0:
      numbers.clear()
    example = task.example('train', row // SAMPLES)
    written, turns, total, ended = walked(task, tokenizer, example, rng)
    token_BT3[row, : len(written)] = written
    for k, (spent, *keys) in enumerate(turns):
      spent_BK3[row, k] = spent
      known_BK2[row, k] = [numbers.setdefault(x, len(numbers)) for x in keys]
    components.append(total)
    done.append(ended)
  rewards = {
    n: np.asarray([c[n] for c in components], np.float32) for n in total
  }
  response_BT, kind_BT, turn_BT = np.moveaxis(token_BT3, -1, 0)
  traj = traj.replace(
    response_BT=response_BT,
    kind_BT=kind_BT,
    mask_BT=(kind_BT == POLICY).astype(np.float32),
    length_B=(turn_BT >= 0).sum(axis=1).astype(np.int32),
    finished_B=np.asarray(done),
    turn_BT=turn_BT,
    turns=Turns(
      reward_BK=spent_BK3[..., 0],
      state_BK=known_BK2[..., 0],
      action_BK=known_BK2[..., 1],
      calls_BK=spent_BK3[..., 1].astype(np.int32),
      duration_BK=spent_BK3[..., 2],
    ),
    rewards=rewards,
    reward_B=base.combine(rewards, task.reward_weights),
  )
  return jax.tree.map(jnp.asarray, traj)


def with_weights(name, task, tokenizer, traj):
  """The result of `world` for its rows."""
  extras = dict(traj.extras)
  if name != 'preferences':  # no verifier has read them
    extras |= token_inputs(task, tokenizer, traj)
  traj = traj.replace(extras=extras)
  outputs = 3
  if name == 'recorded_haggling':  # two Q of every token
    outputs = action_values.num_values(tokenizer.vocab_size)
  cfg = ModelConfig(
    vocab_size=tokenizer.vocab_size,
    num_layers=1,
    width=16,
    num_heads=2,
    num_kv_heads=2,
    head_size=8,
    mlp_size=32,
    value_head=True,
    num_values=outputs,
  )
  trees = [params_lib.init_params(cfg, jax.random.key(i)) for i in range(4)]
  # Small, or the losses of the values were all of the gradient.
  head = 0.1 * np.random.default_rng(0).normal(size=(outputs, cfg.width))
  for tree in trees:
    tree['model']['embed'] = tree['model']['embed'] * 15
    tree['value_head']['w'] = jnp.asarray(head, jnp.float32)
  old = trees[0]
  drift = where.DRIFT[name]
  now = jax.tree.map(lambda a, b: (1 - drift) * a + drift * b, old, trees[1])
  sampler = rounded(old, where.SAMPLER[name])
  return cfg, old, now, trees[2:], sampler, traj


def with_outputs(tree, count):
  """A value head of more outputs: its own again, in reverse."""
  head = tree['value_head']
  more = jax.tree.map(lambda x: jnp.concatenate([x, x[::-1]])[:count], head)
  return {**tree, 'value_head': more}


def with_forced(traj):
  """The first six rows of each group did not choose their first token."""
  forced_B = (traj.row_id_B2[:, 1] < 6).astype(jnp.float32)
  kind_B = jnp.where(forced_B > 0, FORCED, POLICY)
  kind_BT = traj.kind_BT.at[:, 0].set(kind_B)
  return traj.replace(
    kind_BT=kind_BT,
    mask_BT=traj.mask_BT * (kind_BT == POLICY),
    extras={**traj.extras, 'forced_B': forced_B},
  )


def opposed(traj, trained):
  """The last half of every group is an opponent's, as `Against` has it."""
  opponent_B = (traj.row_id_B2[:, 1] >= traj.group_size // 2).astype(float)
  weigh = {'both': (1, 1, 1), 'policy': (1, 0, 1), 'opponent': (0, 1, 0)}
  own, other, counts = weigh[trained]

  def pick(mine):
    return jnp.where(opponent_B > 0, other, mine)

  return traj.replace(
    weight_B=traj.weight_B * pick(own),
    valid_B=traj.valid_B * jnp.where(opponent_B > 0, 1, counts),
    extras={**traj.extras, 'opponent_B': opponent_B},
  )


def scored_steps(traj):
  """A process model's probabilities at the ends of steps, drawn."""
  score_BT = np.random.default_rng(0).uniform(size=traj.mask_BT.shape)
  start_BT = traj.extras['segment_start_BT'] > 0
  ends_BT = jnp.pad(start_BT[:, 1:], ((0, 0), (0, 1)))
  score_BT = jnp.where(ends_BT, jnp.asarray(score_BT, jnp.float32), -1.0)
  return traj.replace(extras={**traj.extras, 'step_score_BT': score_BT})


def with_greedy_reward(traj):
  """The first row of each group stands for the greedy response."""
  first_N = traj.reward_B.reshape(traj.num_prompts, -1)[:, 0]
  greedy_B = jnp.repeat(first_N, traj.group_size)
  return traj.replace(extras={**traj.extras, 'greedy_reward_B': greedy_B})
