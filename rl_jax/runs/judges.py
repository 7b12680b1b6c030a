"""The judges of a run: read, checked, and bound to models and tokenizers."""

import dataclasses
from typing import Any

from absl import logging
import jax

from rl_jax.config import ExperimentConfig
from rl_jax.models import platform, transformer
from rl_jax.models.judge_source import Judge
from rl_jax.models.source import ModelSource
from rl_jax.rollouts.engine import make_engine
from rl_jax.rollouts.judge_questions import Question
from rl_jax.rollouts.judges import NO_JUDGES, Asked, Judges, Reader
from rl_jax.rollouts.sampling import SamplingConfig
from rl_jax.rollouts.stop import make_stop
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.policy import Policy


def make_judges(
  config: ExperimentConfig,
  policy: Policy,
  mesh: jax.sharding.Mesh,
  key: jax.Array,
) -> Judges:
  """Those of config.judges; a model that several read is loaded once.

  Raises: ValueError naming a judge whose model, labels or lengths do not fit.
  """
  if not config.judges:
    return NO_JUDGES
  loaded, found = {'': (policy.model, None, policy.tokenizer)}, []
  for source in config.judges:
    if source.path not in loaded:
      policy_lib.check(ModelSource(path=source.path))
      model, *rest = policy_lib.load_checkpoint(source.path, mesh)
      loaded[source.path] = resolved(model, config), *rest
    model, params, tokenizer = loaded[source.path]
    if tokenizer != policy.tokenizer:
      logging.info(
        'judge %r has another tokenizer than the policy: it reads text',
        source.name,
      )
    reader = _reader(source, config, model, tokenizer, mesh, key)
    encode = _Encode(source, model, tokenizer)
    found.append(Asked(source, params, encode, reader))
  return Judges(found)


def resolved(
  model: transformer.ModelConfig, config: ExperimentConfig
) -> transformer.ModelConfig:
  """The model as a run computes it."""
  own = config.model
  return platform.resolve(
    dataclasses.replace(model, remat=False),
    *(own.compute_dtype, own.attention),
    spans=config.mesh.sequence,
  )


def planned(config: ExperimentConfig) -> list[transformer.ModelConfig]:
  """Models that judges need beside the policy, where their shape is known."""
  paths = dict.fromkeys(one.path for one in config.judges if one.path)
  models = [policy_lib.saved_model(path) for path in paths]
  return [resolved(model, config) for model in models if model is not None]


@dataclasses.dataclass(frozen=True)
class _Encode:
  """Token ids of a question; special tokens are read in templates alone."""

  source: Judge
  model: transformer.ModelConfig
  tokenizer: Any

  def __call__(self, question: Question) -> list[int]:
    if question.messages:
      ids = self._conversation(question)
    else:
      ids = self.tokenizer.encode_prompt(('', question.text))
    if self.source.reads == 'value' and self.model.unscored_id is not None:
      # The token that `transformers` scores is the last one of others.
      while len(ids) > 1 and ids[-1] == self.model.unscored_id:
        ids = ids[:-1]
    return ids

  def _conversation(self, question):
    if question.is_open:
      return self.tokenizer.encode_chat(question.messages)
    *asked, said = question.messages
    ids = self.tokenizer.encode_chat(asked)
    return ids + self.tokenizer.encode_added(
      (asked, True), ((*asked, said), False)
    )


def _reader(source, config, model, tokenizer, mesh, key):
  rollout, update = config.rollout, config.update
  minibatch = update.minibatch_prompts or rollout.num_prompts
  prompts = update.microbatch_prompts or minibatch
  more = source.answer_tokens if source.reads == 'text' else 1
  if source.max_tokens + more > model.max_positions:
    raise ValueError(
      f'judge {source.name!r}: max_tokens + {more} = '
      f'{source.max_tokens + more}, but its model has {model.max_positions} '
      'positions'
    )
  fixed = {
    'model': model,
    'mesh': mesh,
    'pad_id': tokenizer.pad_id,
    'rows': prompts * rollout.group_size,
  }
  if source.reads == 'value' and not model.value_head:
    raise ValueError(
      f'judge {source.name!r} reads a value, but {source.path!r} has no value '
      'head'
    )
  if source.reads == 'value':
    return Reader(**fixed)
  if source.reads == 'labels':
    return Reader(
      **fixed, label_ids=label_ids(source, tokenizer), values=source.values
    )
  stop = make_stop(tokenizer)
  engine = make_engine(
    model,
    SamplingConfig.ended_by(stop, greedy=True),
    group_size=1,
    max_response_tokens=source.answer_tokens,
    mesh=mesh,
  )
  return Reader(**fixed, engine=engine, stop=stop, key=key)


def label_ids(source: Judge, tokenizer: Any) -> tuple[int, ...]:
  """The first token of each label; raises ValueError if two are the same."""
  tokens = [tokenizer.encode(label) for label in source.labels]
  first = [ids[0] for ids in tokens if ids]
  if len(set(first)) < len(source.labels):
    raise ValueError(
      f'judge {source.name!r}: labels {source.labels} begin with tokens '
      f'{first}, which must differ'
    )
  return tuple(first)
