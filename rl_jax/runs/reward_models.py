"""The reward models of a run: read, checked, and bound to its rows."""

import dataclasses
import functools
from typing import Any

from absl import logging
import jax

from rl_jax.config import ExperimentConfig
from rl_jax.data.completions import closing_ids
from rl_jax.judging.learned import NO_LEARNED, LearnedRewards
from rl_jax.learning.learned_reward import Scorer, learned_rewards
from rl_jax.learning.statistics import Forward
from rl_jax.models import transformer
from rl_jax.models.reward_source import RewardModel
from rl_jax.runs import judges
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import compilation
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform


def load(
  source: RewardModel, config: ExperimentConfig, mesh: jax.sharding.Mesh
) -> tuple[transformer.ModelConfig, Any, Any]:
  """(model, parameters, tokenizer), in the compute dtype of the policy.

  Raises: ValueError if the model has no value head, or another number of them.
  """
  policy_lib.check(source.path)
  model, params, tokenizer = policy_lib.load_checkpoint(source.path, mesh)
  model = resolved(source, model, config, Platform.of_mesh(mesh))
  return (
    model,
    {name: params[name] for name in transformer.specs(model)},
    (tokenizer),
  )


def resolved(
  source: RewardModel,
  model: transformer.ModelConfig,
  config: ExperimentConfig,
  platform: Platform,
) -> transformer.ModelConfig:
  """The model as the run computes it; raises ValueError without a head."""
  if not model.value_head:
    raise ValueError(
      f'reward model {source.name!r}: {source.path} has no value head; train '
      'one: --config=configs/worlds/preferences.py --method=reward_model '
      f'--set=model.path={source.path} --set=model.value_head=True'
    )
  weights = source.head_weights
  if weights and len(weights) != model.num_values:
    raise ValueError(
      f'reward model {source.name!r}: head_weights = {weights}, but '
      f'{source.path} has {model.num_values} value heads'
    )
  return judges.resolved(model, config, platform)


def planned(
  source: RewardModel, config: ExperimentConfig, platform: Platform
) -> transformer.ModelConfig | None:
  """The model without its weights; None: its shape is in them only."""
  model = policy_lib.saved_model(source.path)
  if model is None:
    return None
  return resolved(source, model, config, platform)


def check_tokens(name: str, own: Any, other: Any, size: int) -> None:
  """Raises ValueError if ids mean other tokens to a model than to the policy.

  name: of that model, in messages. own, other: the tokenizers of policy and
  model. size: ids of the latter's embedding. Another chat template is logged:
  rows have the policy's.
  """
  reason = None
  if own.vocab_size > size:
    reason = f'the policy has {own.vocab_size} tokens, it has {size}'
  elif own != other:
    if tuple(own.eos_ids) != tuple(other.eos_ids):
      reason = f'its end tokens are {other.eos_ids}, not {own.eos_ids}'
    else:
      pairs = zip(own.token_bytes, other.token_bytes, strict=False)
      different = [i for i, (a, b) in enumerate(pairs) if a != b]
      if different or other.vocab_size < own.vocab_size:
        first = different[0] if different else other.vocab_size
        reason = f'token {first} is another one'
  if reason is not None:
    raise ValueError(
      f'{name} does not have the vocabulary of the policy: {reason}'
    )
  templates = [x.chat_template for x in (own, other)]
  if templates[0] != templates[1]:
    logging.warning(
      '%s has another chat template than the policy: it reads the tokens of '
      'the template of the policy',
      name,
    )


def forward_of(
  config: ExperimentConfig, model: transformer.ModelConfig
) -> Forward:
  """Returns how a reward model runs over a rollout: in the parts of the
  update.
  """
  rollout, update = config.rollout, config.update
  minibatch = update.minibatch_prompts or rollout.num_prompts
  microbatch = update.microbatch_prompts or minibatch
  rows = update.microbatch_rows or rollout.group_size
  parts = rollout.group_size // rows
  return Forward(
    model=model,
    microbatches=rollout.num_prompts // microbatch * parts,
    group_rows=rows,
  )


def step_ids(source: RewardModel, tokenizer: Any) -> tuple[int, ...]:
  """Tokens that end a step, for a model of steps; raises ValueError without."""
  if source.steps == 'none':
    return ()
  ends = tuple(text.encode() for text in source.step_ends)
  texts = enumerate(tokenizer.token_bytes)
  found = tuple(i for i, text in texts if text.endswith(ends))
  if not found:
    raise ValueError(
      f'reward model {source.name!r} has steps = {source.steps!r}, but no '
      f'token of the policy ends with one of step_ends = {source.step_ends!r}'
    )
  return found


def scorer(
  source: RewardModel,
  config: ExperimentConfig,
  model: transformer.ModelConfig,
  tokenizer: Any,
) -> Scorer:
  """The model on the rows of the run; tokenizer: of the policy.

  Raises: ValueError if pairs of responses, or steps, have no place in it.
  """
  forward = forward_of(config, model)
  ends = tuple(tokenizer.eos_ids)
  if not source.separator:
    return Scorer(
      source,
      forward,
      step_ids(source, tokenizer),
      eos_ids=ends,
      closing=_closing(config, model, tokenizer),
    )
  rollout, separator = config.rollout, tuple(tokenizer.encode(source.separator))
  size = rollout.max_prompt_tokens + 2 * rollout.max_response_tokens
  size += len(separator)
  if rollout.group_size < 2 or size > model.max_positions:
    raise ValueError(
      f'reward model {source.name!r} compares two responses in one row: it '
      f'needs rollout.group_size >= 2, which is {rollout.group_size}, and '
      f'{size} positions of {model.max_positions}'
    )
  rows = forward.group_rows or rollout.group_size
  forward = dataclasses.replace(forward, group_rows=rows * rollout.group_size)
  return Scorer(source, forward, (), separator, ends)


def _closing(config, model, tokenizer):
  """The end of chats, for classifiers, which score the last token."""
  if model.unscored_id is None:
    return ()
  example = config.task.example('train', 0)
  return closing_ids(tokenizer) if example.messages else ()


def stage(
  models: tuple[Scorer, ...], mesh: jax.sharding.Mesh, kind: str | None = None
) -> Any:
  """Jitted: (params, traj) -> scores by name; kind: of rivals, see Scorer."""
  return jax.jit(
    functools.partial(learned_rewards, models, kind=kind),
    out_shardings=mesh_lib.replicated(mesh),
    compiler_options=compilation.options(Platform.of_mesh(mesh)),
  )


def make_rewards(
  config: ExperimentConfig, tokenizer: Any, mesh: jax.sharding.Mesh
) -> LearnedRewards:
  """The learned rewards that the collector adds to those of the task."""
  if not config.reward_models:
    return NO_LEARNED
  models, params = [], {}
  for source in config.reward_models:
    model, params[source.name], other = load(source, config, mesh)
    name = f'reward model {source.name!r} ({source.path})'
    check_tokens(name, tokenizer, other, model.vocab_size)
    models.append(scorer(source, config, model, tokenizer))

  def of(chosen):
    return functools.partial(stage(tuple(chosen), mesh), params)

  pairs = tuple(one for one in models if one.compares)
  compared = functools.cache(lambda kind: stage(pairs, mesh, kind))
  return LearnedRewards(
    score=of(models),
    weights={source.name: source.weight for source in config.reward_models},
    place=mesh_lib.replicated(mesh),
    single=of(one for one in models if not one.compares),
    compare=lambda traj, kind: compared(kind)(params, traj),
  )
