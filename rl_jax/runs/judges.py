"""The judges of a run: read, checked, and bound to models and tokenizers."""

import dataclasses
from typing import Any

from absl import logging
import jax

from rl_jax.config import ExperimentConfig
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes import turns
from rl_jax.judging import scripted
from rl_jax.judging.judge_questions import Question
from rl_jax.judging.judges import NO_JUDGES, Asked, Judges, Reader
from rl_jax.judging.rubric import Reviser
from rl_jax.models import critic, transformer
from rl_jax.models import platform as platform_lib
from rl_jax.models.judge_source import Judge
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.policy import Policy
from rl_jax.runtime.platform import Platform
from rl_jax.tasks import Levels, Mixture


def make_judges(
  config: ExperimentConfig,
  policy: Policy,
  mesh: jax.sharding.Mesh,
  key: jax.Array,
) -> Judges:
  """The judges of config.judges; a model that several read is loaded once.

  Raises: ValueError naming a judge whose model, labels or lengths do not fit.
  """
  if not config.judges:
    return NO_JUDGES
  loaded, found = {'': (policy.model, None, policy.tokenizer)}, []

  def load(path, name):
    if path not in loaded:
      try:
        policy_lib.check(path)
      except (ValueError, OSError) as error:
        raise ValueError(f'judge {name!r}: {error}') from None
      model, *rest = policy_lib.load_checkpoint(path, mesh)
      loaded[path] = resolved(model, config, Platform.of_mesh(mesh)), *rest
    return loaded[path]

  for source in config.judges:
    check_parts(source, config.task)
    reviser = None
    if source.revision is not None and source.revision.function:
      reviser = scripted.reviser(source.name, source.revision)
    elif source.revision is not None:
      writer = load(source.revision.path, source.name)
      reviser = _reviser(source, config, mesh, key, *writer)
    if source.function:
      found.append(scripted.judge(source, reviser))
      continue
    model, params, tokenizer = load(source.path, source.name)
    if tokenizer != policy.tokenizer:
      logging.info(
        'judge %r has another tokenizer than the policy: it reads text',
        source.name,
      )
    make = _Readers(config, mesh, key, source.name, model, tokenizer)
    encode = Encode(source, model, tokenizer)
    found.append(Asked(source, params, encode, make.of(source), reviser))
  return Judges(found)


def check_parts(source: Judge, task: Any) -> None:
  """Raises ValueError if the judge names parts that the task does not have."""
  if not source.parts:
    return
  known = []
  if isinstance(task, Mixture):
    known = [part.name for part in task.parts]
  elif isinstance(task, Levels):
    known = [task.name(level) for level in range(len(task.tasks))]
  unknown = [name for name in source.parts if name not in known]
  if unknown:
    raise ValueError(
      f'judge {source.name!r}: parts = {unknown} are none of the parts of '
      f'{type(task).__name__}: {known}'
    )


@dataclasses.dataclass(frozen=True)
class EncodeText:
  """Token ids of a text, or of a user's message."""

  chat: bool
  tokenizer: Any

  def __call__(self, text: str) -> list[int]:
    if self.chat:
      return self.tokenizer.encode_chat(({'role': 'user', 'content': text},))
    return self.tokenizer.encode_prompt(('', text))


def _reviser(judge, config, mesh, key, model, params, tokenizer):
  source = judge.revision
  readers = _Readers(config, mesh, key, judge.name, model, tokenizer)
  return Reviser(
    source,
    params,
    EncodeText(source.chat, tokenizer),
    readers.texts(source.max_tokens, source.answer_tokens),
  )


def resolved(
  model: transformer.ModelConfig, config: ExperimentConfig, platform: Platform
) -> transformer.ModelConfig:
  """The model as a run computes it."""
  own = config.model
  return platform_lib.resolve(
    dataclasses.replace(model, remat=False),
    own.compute_dtype,
    own.attention,
    platform=platform,
    spans=config.mesh.sequence,
  )


def paths(config: ExperimentConfig) -> list[str]:
  """Paths of the models that judges and partners need, each once."""
  parts = [x for one in config.judges for x in (one, one.revision) if x]
  parts = [*parts, *config.partners]
  return list(dict.fromkeys(part.path for part in parts if part.path))


def planned(
  config: ExperimentConfig, platform: Platform
) -> list[transformer.ModelConfig]:
  """Models of `paths`, where their shape is known."""
  models = [policy_lib.saved_model(path) for path in paths(config)]
  return [
    resolved(model, config, platform) for model in models if model is not None
  ]


@dataclasses.dataclass(frozen=True)
class Encode:
  """Token ids of a question; special tokens are read in templates only."""

  source: Judge
  model: transformer.ModelConfig
  tokenizer: Any

  def __call__(self, question: Question) -> list[int]:
    if question.messages:
      ids = self._conversation(question)
    else:
      ids = EncodeText(False, self.tokenizer)(question.text)
    return ids if self.source.reads != 'value' else self._to_scored(ids)

  def _to_scored(self, ids):
    """Up to the token after which the model was trained."""
    unscored, ends = self.model.unscored_id, self.tokenizer.eos_ids
    if unscored is None:  # the end token
      found = [i for i, x in enumerate(ids) if x in ends]
      closes = self.source.chat and found
      return ids[: found[-1] + 1] if closes else [*ids, ends[0]]
    # The token that `transformers` scores is the last one of others.
    while len(ids) > 1 and ids[-1] == unscored:
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


@dataclasses.dataclass(frozen=True)
class _Readers:
  """The readers of one model, for the judge of that name."""

  config: ExperimentConfig
  mesh: jax.sharding.Mesh
  key: jax.Array
  name: str
  model: transformer.ModelConfig
  tokenizer: Any

  def of(self, source: Judge) -> Reader:
    """Returns what the judge reads; raises ValueError if the model has it
    not.
    """
    if source.reads == 'text':
      return self.texts(source.max_tokens, source.answer_tokens)
    fixed = self._fixed(source.max_tokens, 1)
    if source.reads == 'labels':
      ids = label_ids(source, self.tokenizer)
      return Reader(**fixed, label_ids=ids, values=source.values)
    if not self.model.value_head:
      raise ValueError(
        f'judge {self.name!r} reads a value, but {source.path!r} has no value '
        'head'
      )
    if critic.has_own(self.model):
      raise ValueError(
        f'judge {self.name!r} reads a value at the end of a prompt, and the '
        f'value head of {source.path!r} reads separate layers (model.critic)'
      )
    return Reader(**fixed)

  def texts(self, max_tokens: int, answer_tokens: int) -> Reader:
    """Greedy answers."""
    stop = make_stop(self.tokenizer)
    engine = make_engine(
      self.model,
      SamplingConfig.ended_by(stop, greedy=True),
      EngineConfig(group_size=1, max_response_tokens=answer_tokens),
      self.mesh,
    )
    fixed = self._fixed(max_tokens, answer_tokens)
    return Reader(**fixed, engine=engine, stop=stop, key=self.key)

  def _fixed(self, max_tokens, more):
    if max_tokens + more > self.model.max_positions:
      raise ValueError(
        f'judge {self.name!r}: questions of {max_tokens} tokens and answers of '
        f'{more}, but its model has {self.model.max_positions} positions'
      )
    # Groups are judged as they end: an answer must not depend on which others
    # are read in its call, so it has one width.
    across = turns.crosses_updates(self.config)
    return {
      'model': self.model,
      'mesh': self.mesh,
      'pad_id': self.tokenizer.pad_id,
      'rows': rows_of(self.config),
      'width': max_tokens if across and self.config.method.group_filter else 0,
    }


def rows_of(config: ExperimentConfig) -> int:
  """Questions a call: the rows of a microbatch."""
  rollout, update = config.rollout, config.update
  minibatch = update.minibatch_prompts or rollout.num_prompts
  prompts = update.microbatch_prompts or minibatch
  return prompts * rollout.group_size


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
