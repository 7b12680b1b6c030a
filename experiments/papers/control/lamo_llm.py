"""LaMo (C156) with a language model of text from a path, one seed.

The budget: UPDATES of 4 windows and one text, for two beginnings of the same
decoder, its own weights and random ones, on a tenth of the data. The body is
frozen, and adapters, MLPs and the text loss are as in the row `lamo`. Values
are those of test episodes of one training run, so the intervals of the page say
nothing of other seeds.
"""

import dataclasses
import functools
from pydoc_data import topics
from typing import Any

import jax
import jax.numpy as jnp

from experiments.papers.control import lamo, maze, policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control.conditioned import Aiming, Conditioned, Episodes, Texts
from rl_jax.models.files import model_dir
from rl_jax.models.tokenizer import Tokenizer
from rl_jax.models.transformer import ModelConfig
from rl_jax.types import Array, Metrics

UPDATES, BATCH, TOKENS = 150, 4, 32  # tokens of a text
SHARES = (0.1,)
STARTS = 16  # of test episodes, the same for all arms
CHARACTERS = 100_000  # of the help texts that are read
TEXT = 'cross-entropy of text, nats a token'
PRETRAINED, RANDOM = 'weights of the model', 'random weights'
SMALL = 'decision transformer of two layers'


def loaded(path: str) -> tuple[ModelConfig, Any, Tokenizer]:
  """(decoder with adapters of the row, its body, its tokenizer).

  Raises: ValueError naming --model for what is not a plain language model.
  """
  try:
    model, params, tokenizer = model_dir.load_any(
      path, param_dtype='float32', compute_dtype='float32'
    )
  except (ValueError, OSError) as error:
    raise ValueError(f'--model={path}: {error}') from error
  if model.value_head or model.lora_rank:
    raise ValueError(
      f'--model={path} has value_head = {model.value_head} and lora_rank = '
      f'{model.lora_rank}: the row needs a language model without a value head '
      'and without adapters'
    )
  needed = max(3 * lamo.WINDOW, TOKENS) + 1
  if model.max_positions < needed:
    raise ValueError(
      f'--model={path} reads {model.max_positions} tokens (max_positions), but '
      f'the row needs {needed}'
    )
  adapted = dataclasses.replace(model, **lamo.ADAPTERS)
  return adapted, params['model'], tokenizer


def texts(tokenizer: Tokenizer) -> Array:
  """Pieces of Python's help texts, int32[M, TOKENS]."""
  text = '\n'.join(topics.topics[name] for name in sorted(topics.topics))
  ids = jnp.asarray(tokenizer.encode(text[:CHARACTERS]), jnp.int32)
  count = len(ids) // TOKENS
  return ids[: count * TOKENS].reshape(count, TOKENS)


@functools.partial(jax.jit, static_argnames='updates')
def fitted(
  learner: Conditioned,
  params: Any,
  data: Episodes,
  token_MX: Array | None,
  key: Array,
  updates: int,
) -> tuple[Any, Metrics]:
  """(parameters, metrics [updates]); one text an update, or none."""
  read = None if token_MX is None else Texts(token_MX, 1)
  state, metrics = learner.fit(params, data, read, key, updates)
  return state.params, metrics


@jax.jit
def score(learner: Conditioned, params: Any, key: Array) -> Array:
  """Steps at the goal of the test episodes, [STARTS]."""
  target = jnp.float32(lamo.TARGET)
  actor = Aiming(learner=learner, params=params, target=target)
  key_B = jax.random.split(key, STARTS)
  steps = policies.play(lamo.world(), actor, key_B, maze.HORIZON)
  return steps.reward.sum(axis=1)


def measure(key_S: Array, scale: float, path: str) -> Results:
  """Two beginnings of the model's decoder, and a small one for comparison."""
  if len(key_S) != 1:
    raise ValueError(
      f'--seeds={len(key_S)}: the row is of one seed, and its values are those '
      'of test episodes'
    )
  model, body, tokenizer = loaded(path)
  token_MX, updates = texts(tokenizer), max(1, round(UPDATES * scale))
  key, tenth = key_S[0], max(1, updates // 10)
  large, small = (
    dataclasses.replace(lamo.learner_of(x, whole), batch=BATCH)
    for x, whole in ((model, False), (lamo.body(), True))
  )
  arms = {
    PRETRAINED: (large, body, token_MX),
    RANDOM: (large, None, token_MX),
    SMALL: (small, None, None),
  }
  data = lamo.episodes(jax.random.fold_in(key, 1), float(maze.HORIZON))
  found: dict[str, dict[str, Array]] = {}
  for share in SHARES:
    rows = round(share * lamo.EPISODES)
    part = jax.tree.map(lambda x, n=rows: x[:n], data)
    name = f'{lamo.METRIC}, {share:.0%} of the data'
    earned = {'data': part.returns[:, 0] * maze.HORIZON}
    losses: dict[str, Array] = {}
    for arm, (learner, start, texts_MX) in arms.items():
      params = learner.init(jax.random.fold_in(key, 3), start)
      draw, test = (jax.random.fold_in(key, n) for n in (5, 4))
      params, metrics = fitted(learner, params, part, texts_MX, draw, updates)
      earned[arm] = score(learner, params, test)
      if texts_MX is not None:
        losses[f'{arm}, first tenth'] = metrics['text'][:tenth]
        losses[f'{arm}, last tenth'] = metrics['text'][-tenth:]
    found |= {name: earned, f'{TEXT}, {share:.0%} of the data': losses}
  return jax.device_get(found)


def _claim(share: float) -> Claim:
  """The model's own weights earn more than random ones."""
  return Claim(
    f'{share:.0%} of the data: its own weights are better than random ones',
    f'{lamo.METRIC}, {share:.0%} of the data',
    RANDOM,
    PRETRAINED,
  )


ROW = Row(
  'LaMo (C156), U maze, SmolLM2-135M with LoRA, one seed',
  tuple(_claim(share) for share in SHARES),
  measure,
  seeds=1,
  takes_model=True,
)
