"""Limits of episodes, and the tokens of what environments say."""

from collections.abc import Sequence
import dataclasses
from typing import Any

from rl_jax.checks import INT32, checked, chosen, ranged
from rl_jax.tasks.environments.base import (
  is_environment,
)

FIXED = 'fixed'  # of RolloutConfig.order
ORDERS = (FIXED, 'arrival')
_ACTION, _OBSERVATION = 'anaction', 'anobservation'  # in a probe of a template


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class TurnConfig:
  """Limits of an episode; rollout.max_response_tokens limits its sum.

  An episode that reaches one is cut: its reward counts.
  """

  max_turns: int = ranged(8, 1, INT32)
  max_turn_tokens: int = ranged(
    16, 1, INT32
  )  # with the token that ends the turn
  max_observation_tokens: int = ranged(
    64, 1, INT32
  )  # longer ones lose a side, `cut`
  cut: str = chosen('end', ('start', 'end'))


def check(task: Any, rollout: Any, method: Any) -> None:
  """Raises ValueError if task, rollout and method do not agree on episodes."""
  name = type(task).__name__
  if is_environment(task):
    _check_limits(name, rollout)
    _check_method(task, rollout, method)
  elif method.wrapper.replays:
    raise ValueError(
      f'method.rollout = {type(method.rollout).__name__} repeats episodes, but '
      f'{name} is not an environment (it has no method `make`): set it to null'
    )
  elif rollout.turns is not None:
    raise ValueError(
      f'rollout.turns is set, but {name} is not an environment (it has no '
      '`make`): set it to null'
    )


def _check_limits(name, rollout):
  if rollout.turns is None:
    raise ValueError(
      f'rollout.turns is missing: {name} has episodes of several turns; '
      "give it, for example --set='rollout.turns=TurnConfig(max_turns=8)'"
    )
  if rollout.speculative is not None:
    raise ValueError(
      f'rollout.speculative = {rollout.speculative!r}, but turns of {name} '
      'are decoded token by token: set it to null'
    )


def _check_method(task, rollout, method):
  name, kind = type(task).__name__, type(method.rollout).__name__
  players, plays = task.traits.players, method.wrapper.plays
  if players > 1 and rollout.num_prompts % players:
    raise ValueError(
      f'rollout.num_prompts = {rollout.num_prompts}, but {name} has a prompt '
      f'for each of {players} players: make it a multiple'
    )
  if plays and players != 2:
    raise ValueError(
      f'method.rollout = {kind} plays games of two, '
      f'but {name} has {players} players'
    )
  replays = method.wrapper.replays
  if players > 1 and replays:
    raise ValueError(
      f'method.rollout = {kind} repeats episodes of '
      f'one player, but {name} has {players}: set it to null'
    )
  if replays and not task.traits.deterministic:
    raise ValueError(
      f'method.rollout = {kind} repeats episodes, '
      f'but {name} has deterministic = False: set it to null'
    )
  if task.traits.rewrites and players > 1:
    raise ValueError(
      f'{name} has rewrites = True, so it cannot have {players} players'
    )
  if task.traits.rewrites and replays:
    raise ValueError(
      f'method.rollout = {kind} repeats episodes, but {name} rewrites their '
      'contexts: set it to null'
    )
  by_time = method.wrapper.by_time
  if method.rollout is not None and not (plays or replays or by_time):
    raise ValueError(
      f'method.rollout = {kind} is for single '
      f'responses, but {name} has episodes: set it to null'
    )


def crosses_updates(config: Any) -> bool:
  """Returns whether episodes start while earlier updates wait for theirs.

  With rollout.staleness = 0, or if `what_waits` says why they cannot, those of
  an update start after the update before it.
  """
  rollout = config.rollout
  if rollout.turns is None or not rollout.staleness:
    return False
  return what_waits(config) is None


def what_waits(config: Any) -> str | None:
  """The setting that needs whole batches of episodes, and why; None: no one.

  config: an ExperimentConfig.
  """
  rollout, method = config.rollout, config.method
  for field, value in (
    ('method.rollout', method.rollout),
    ('rollout.recorded_prompts', rollout.recorded_prompts),
  ):
    if value:
      return f'{field}: only plain groups are played across updates'
  keeps, players = method.group_filter, config.task.traits.players
  if keeps is None:
    return None
  start = f'method.group_filter = {type(keeps).__name__}'
  if players > 1:
    return (
      f'{start}, but {type(config.task).__name__} has {players} players, whose '
      'groups are trained together'
    )
  if keeps.compares_groups:
    return (
      f'{start}, which compares the groups of a rollout: across updates '
      'groups are judged one by one'
    )
  revised = [one.name for one in config.judges if one.revision is not None]
  if revised:
    return (
      f'{start} and a revision of the judges {revised}: across updates groups '
      'are judged one by one, and a revision reads whole batches'
    )
  return None


def check_order(config: Any) -> None:
  """Raises ValueError if groups would not arrive one by one.

  config: an ExperimentConfig.
  """
  rollout = config.rollout
  if rollout.order == FIXED or crosses_updates(config):
    return
  why = f'rollout.turns = {rollout.turns}'
  if rollout.turns is not None:
    why = f'rollout.staleness = {rollout.staleness}'
    if rollout.staleness:
      why = what_waits(config)
  raise ValueError(
    f'rollout.order = {rollout.order!r} with {why}: groups arrive one by one '
    'only if episodes are played across updates, with rollout.staleness of at '
    f'least 1; or set rollout.order to {FIXED!r}'
  )


@dataclasses.dataclass(frozen=True)
class TurnFormat:
  """Token ids around the observations of an episode.

  before: after a turn that has ended by itself. closing: in front of it after
  one that was cut. after: what opens the policy's turn.
  """

  tokenizer: Any
  limits: TurnConfig
  before: tuple[int, ...] = ()
  closing: tuple[int, ...] = ()
  after: tuple[int, ...] = ()

  @property
  def most(self) -> int:
    """Tokens between two turns, at most."""
    around = (*self.before, *self.closing, *self.after)
    return len(around) + self.limits.max_observation_tokens

  def observation(self, text: str, cut: bool) -> tuple[list[int], bool]:
    """(ids, whether some were left out); cut: so was the turn before.

    Special tokens that the text spells are ordinary text.
    """
    ids, most = self.tokenizer.encode(text), self.limits.max_observation_tokens
    closing = self.closing if cut else ()
    if len(ids) <= most:
      return [*closing, *self.before, *ids, *self.after], False
    kept = ids[:most] if self.limits.cut == 'end' else ids[-most:]
    return [*closing, *self.before, *kept, *self.after], True

  def again(
    self,
    turns: Sequence[tuple[list[int], list[int]]],
    history: Sequence[tuple[int, str | None]],
  ) -> list[int]:
    """Ids right after the prompt of turns: (ids that open it, its own).

    history: see Reply. IndexError: a turn that has not been.
    """
    ids: list[int] = []
    for number, text in history:
      if not 0 <= number < len(turns):
        raise IndexError(f'history has turn {number} of {len(turns)}')
      opening, action = turns[number]
      if text is not None:
        end = [x for x in action[-1:] if x in self.tokenizer.eos_ids]
        action = [*self.tokenizer.encode(text), *end]
      # Closed is what comes before it here: another turn than it once was, or
      # the empty one that the prompt opens.
      first = len(self.closing)
      if opening and tuple(opening[:first]) == self.closing:
        opening = opening[first:]
      if opening and not (ids and ids[-1] in self.tokenizer.eos_ids):
        ids += self.closing
      ids += [*opening, *action]
    return ids


def turn_format(task: Any, tokenizer: Any, limits: TurnConfig) -> TurnFormat:
  """Returns what the chat template writes between turns; nothing in plain text.

  Raises: ValueError if the template changes or repeats what is said, does not
    read what the task gives it, or describes calls of tools in another form
    than that which the task reads.
  """
  traits = task.traits
  if not traits.chat:
    return TurnFormat(tokenizer, limits)
  messages = [
    {'role': 'user', 'content': 'aquestion'},
    {'role': 'assistant', 'content': _ACTION},
    {'role': traits.role, 'content': _OBSERVATION},
  ]
  variables = traits.arguments
  try:
    text = tokenizer.chat(messages, add_generation_prompt=True, **variables)
  except ValueError as error:
    hint = "; task.shown='text' needs no template that reads them"
    more = hint if 'tools' in variables else ''
    raise ValueError(f'{type(task).__name__}: {error}{more}') from error
  mark = traits.call_mark
  if mark not in text:
    raise ValueError(
      f'{type(task).__name__}: the chat template describes tools, but no calls '
      f"after {mark!r}, the only ones read: set task.shown='text'"
    )
  parts = text.split(_ACTION)
  parts = parts[-1].split(_OBSERVATION) if len(parts) == 2 else []
  if len(parts) != 2:
    raise ValueError(
      f'{type(task).__name__}: the chat template does not write a turn and '
      f'an observation of role {traits.role!r} as they are: {text!r}'
    )
  before, after = (tuple(tokenizer.encode(x, control=True)) for x in parts)
  closing = _end(before, tokenizer.eos_ids)
  return TurnFormat(tokenizer, limits, before[len(closing) :], closing, after)


def _end(ids: tuple[int, ...], eos_ids: Sequence[int]) -> tuple[int, ...]:
  """The end token if the ids begin with it: a whole turn has its own."""
  return ids[:1] if ids and ids[0] in eos_ids else ()
