"""What a task is: numbered prompts, and named reward components of a response.

Nothing in this package imports JAX at module level, because reward workers
import it: the jittable verifiers live in `device_verifiers`.
"""

from collections.abc import Mapping
import dataclasses
import difflib
import sys
from typing import Any, Protocol

SPLITS = ('train', 'validation', 'test')
OUTCOME = 'outcome'  # the component that every task returns: 1 is solved
PLACE = 'place'  # in Example.meta: file and row of the data
PART = 'mixture_part'  # in Example.meta: the name that metrics are split by
COLUMNS = 'columns'  # in Example.meta: fields of the row that rewards read


@dataclasses.dataclass(frozen=True)
class Example:
  """One problem.

  `prompt` is what the policy continues, unless `messages` is set: then it is
  the tokenizer's chat form of them followed by `prefill` (see
  `templates.encode_prompt`). The verifier judges `prefill + response`.
  `arguments` are variables of the chat template, such as enable_thinking.
  Special tokens that data spell are ordinary text: `parts` is the prompt as
  template, data, template, ... in turn; without it all of the prompt is data.
  """

  prompt: str
  answer: str
  id: int  # stable index in its split
  meta: dict[str, Any] = dataclasses.field(default_factory=dict)
  messages: tuple[dict[str, Any], ...] = ()
  prefill: str = ''
  parts: tuple[str, ...] = ()
  arguments: dict[str, Any] = dataclasses.field(default_factory=dict)

  def __post_init__(self):
    if self.parts and ''.join(self.parts) != self.prompt:
      raise ValueError(
        f'Example.parts = {self.parts!r} do not make up prompt = '
        f'{self.prompt!r}'
      )


@dataclasses.dataclass(frozen=True)
class Logged:
  """A response to a prompt that data hold.

  `text`, or for a conversation `messages`: the assistant's turn and what
  follows it. turns: of an episode, instead: (what was said, what was then
  told) of each turn. turn_ends: an end token closes what was said; else a turn
  ends by its length. truncated: the episode was cut before its end. reward: of
  the data, 1 where they have none. label: 1 for a chosen or desirable response,
  0 for a rejected one, None without a label.
  steps: parts of the text, which are encoded one by one, () for one part.
  step_labels: of each a number from 0 (wrong) to 1, () if the data have none.
  aspects: a label for each of several aspects, None where it is missing, () if
  the data have none.
  distance: 1 - cos of embeddings of prompt and text, None if unknown.
  annotator: number, from 0, of who compared the responses, None if unknown.
  """

  text: str = ''
  messages: tuple[dict[str, Any], ...] = ()
  turns: tuple[tuple[str, str], ...] = ()
  turn_ends: bool = False
  truncated: bool = False
  reward: float = 1.0
  label: int | None = None
  steps: tuple[str, ...] = ()
  step_labels: tuple[float, ...] = ()
  distance: float | None = None
  aspects: tuple[float | None, ...] = ()
  annotator: int | None = None


class Task(Protocol):
  """A frozen dataclass with JSON-friendly fields.

  Optional attributes: `needs_workers` (a reward call may not end) and
  `reward_seconds` (how long it may take), see `pool.check_limits`.
  Optional members: `logged(example) -> (Logged, ...)`, responses that data
  hold, `num_logged` of every prompt; `prepare()` imports what `reward` needs,
  once, before workers are forked; `hinted(example)`, it with a hint,
  `hinted_by(example, share)`, a hint of that share of the solution, and
  `with_examples(example, ((solved, response), ...))`, it behind solved ones;
  `alphabet` for a character tokenizer, or a tuple of words and other pieces;
  `modes`, {name: text}, how responses of a mode begin, the cheapest first;
  `as_read(text)`, an answer or response as a person reads it, where it is
  written otherwise;
  `device_answers(examples, tokenizer) -> (i32[B, A], i32[B])` and
  `reward_device(response_BT, length_B, answer_BA, answer_length_B, tokenizer)
  -> {component: f32[B]}`, the jittable form of `reward`;
  `row_inputs_device(response_BT, length_B, tokenizer) -> {key: f32[B, T]}`,
  what pieces read of tokens (pieces/row_inputs.py).
  """

  reward_weights: dict[str, float]

  def num_prompts(self, split: str) -> int:
    """Prompts of a split; 0 if the task has no such split."""

  def example(self, split: str, index: int) -> Example:
    """The example of that index; always the same."""

  def target(self, example: Example) -> str:
    """The target text of supervised training, without end token."""

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """Components of the text before the end token; `outcome` is one."""


def logged(task: Task, example: Example) -> tuple[Logged, ...]:
  """The responses of the data; of other tasks the target alone."""
  if hasattr(task, 'logged'):
    return task.logged(example)
  return (Logged(text=task.target(example)),)


def num_logged(task: Task) -> int:
  """How many of them each prompt has."""
  return getattr(task, 'num_logged', 1)


def outcome_only() -> Any:
  """The dataclass field {'outcome': 1.0}, left out of the hash."""
  return weights_field(outcome=1.0)


def weights_field(**weights: float) -> Any:
  """A dataclass field for reward_weights with these defaults."""
  return dataclasses.field(default_factory=lambda: dict(weights), hash=False)


def combine(components: Mapping[str, Any], weights: Mapping[str, float]) -> Any:
  """sum_k weights[k] * components[k], of numbers or of arrays [B].

  Raises: ValueError naming a weighted component that the task did not return.
  """
  missing = sorted(set(weights) - set(components))
  if missing:
    raise ValueError(
      f'reward_weights names {missing}, but the components are '
      f'{sorted(components)}'
    )
  return sum(weights[name] * components[name] for name in weights)


def check_task(task: Any) -> None:
  """Raises ValueError for what lacks a member of every task, or has no weights.

  Users write tasks of their own.
  """
  members = ('reward_weights', 'num_prompts', 'example')
  missing = [name for name in members if not hasattr(task, name)]
  if missing:
    raise ValueError(
      f'task: {type(task).__name__} is no task: it has no {missing[0]!r}; all '
      f'have {", ".join(members)}'
    )
  _check_judge(task)
  weights = task.reward_weights
  if not (isinstance(weights, Mapping) and weights) or not all(
    isinstance(x, (int, float)) and abs(x) <= sys.float_info.max
    for x in weights.values()
  ):
    raise ValueError(
      f'task.reward_weights = {weights!r}: expected finite weights by name'
    )


def _check_judge(task):
  """Raises ValueError for a task that can neither judge nor begin episodes."""
  name, known = type(task).__name__, [x for x in dir(task) if x[0] != '_']
  make = getattr(task, 'make', None)
  own = getattr(make, '__qualname__', '') != 'EnvironmentTask.make'
  if make is not None and not own:
    known.remove('make')
    hint = _nearest('make', known)
    raise ValueError(
      f'task: {name} has no method make(example), which returns an episode '
      f'that has not begun{hint}'
    )
  judges = ('reward', 'reward_device', 'make')
  if not any(callable(getattr(task, judge, None)) for judge in judges):
    hint = _nearest('reward', known)
    raise ValueError(
      f'task: {name} has no method reward(example, response), and no '
      f'make(example) for episodes{hint}'
    )


def _nearest(name, known):
  near = difflib.get_close_matches(name, known, n=1)
  return f'; it has {near[0]!r}' if near else ''


def check_index(task: Any, split: str, index: int) -> None:
  """Raises ValueError or IndexError unless the task has that example."""
  check_split(split)
  count = task.num_prompts(split)
  if not 0 <= index < count:
    raise IndexError(
      f'{type(task).__name__}: index {index} of split {split!r} is outside '
      f'0..{count - 1}'
    )


def configured_size(task: Any, split: str) -> int:
  """The task's num_train, num_validation or num_test, for drawn prompts."""
  check_split(split)
  return getattr(task, f'num_{split}')


def check_split(split: str) -> None:
  """Raises ValueError unless split is one of SPLITS."""
  if split not in SPLITS:
    raise ValueError(f'split {split!r} is none of {", ".join(SPLITS)}')
