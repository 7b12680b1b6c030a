"""A check that a tokenizer writes prompts as the paper did."""

from collections.abc import Sequence
import functools

from experiments.papers import settings
from experiments.papers.recipe import Recipe
from rl_jax import config as config_lib
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.episode_prompts import begun
from rl_jax.measures.option_scores import OptionSet
from rl_jax.models.files import tokenizer_files
from rl_jax.rollouts.prompts import OverlongPromptError, PromptSet
from rl_jax.tasks import QuestionAnswer
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import is_environment
from rl_jax.tasks.templates import render_prompt

QUESTION = '{question}'  # stands for itself


def rendered(config: ExperimentConfig, folder: str) -> str:
  """The prompt of QUESTION as the tokenizer of a model directory writes it.

  It is '' of a task whose rows hold no questions.

  Raises: ValueError if the tokenizer has no chat template but needs one.
  """
  _, task = settings.rows_of(config.task)
  if not isinstance(task, QuestionAnswer):
    return ''
  fields = task.template.fields(QUESTION)
  example = Example(**fields, answer='', id=0)
  return render_prompt(example, tokenizer_files.load_tokenizer(folder))


def missing(text: str, parts: Sequence[str]) -> str | None:
  """The first part that a text does not have after those before it, or None."""
  start = 0
  for part in parts:
    found = text.find(part, start)
    if found < 0:
      return part
    start = found + len(part)
  return None


def check_lengths(config: ExperimentConfig, folder: str) -> None:
  """Raises ValueError naming a prompt that is longer than the limit.

  Training may leave out long prompts (rollout.overlong_prompt); a benchmark is
  measured on all of its problems.
  """
  tokenizer, rollout = tokenizer_files.load_tokenizer(folder), config.rollout
  limit, own = rollout.max_prompt_tokens, settings.all_rows(config.task)
  if (
    rollout.overlong_prompt == 'error' and own and not rollout.recorded_prompts
  ):
    _kind(config.task)(config.task, 'train', tokenizer, limit)
  protocols = config_lib.evaluations(config)
  for one in config.evaluation.sets:
    kind = _kind(one.task)
    if protocols[one.name].evaluation.options:
      tokens = config_lib.evaluated_tokens(protocols[one.name])
      kind = functools.partial(OptionSet, max_option_tokens=tokens)
    elif not settings.all_rows(one.task):
      continue  # a game, whose prompts are known when it is played
    try:
      kind(one.task, one.split, tokenizer, limit)
    except OverlongPromptError as error:
      raise ValueError(
        f'evaluation set {one.name!r}: {str(error).partition(";")[0]}; a '
        'benchmark is measured on all of its problems'
      ) from error


class _BegunPrompts(PromptSet):
  """Prompts that end with the first observation of their episode."""

  def _example(self, example_id):
    return begun(self.task)([super()._example(example_id)], {})[0]


def _kind(task):
  """The prompts of a task as its run has them."""
  return _BegunPrompts if is_environment(task) else PromptSet


def check(recipe: Recipe, config: ExperimentConfig, folder: str) -> None:
  """Compares the prompt of a model directory with the paper's, if it is known.

  Raises: ValueError naming the file, the expected and the found prompt.
  """
  file = f'{folder}/tokenizer_config.json'
  try:
    text = rendered(config, folder)
  except ValueError as error:
    raise ValueError(f'{file}: {error}') from error
  part = missing(text, recipe.chat) if text else None
  if part is not None:
    raise ValueError(
      f'{file}: the chat template is not that of {recipe.paper}: expected '
      f'{part!r} in the prompt of a question, found {text!r}'
    )
