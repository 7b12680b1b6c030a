"""A check that a tokenizer writes prompts as the paper did."""

from collections.abc import Sequence

from experiments.papers import settings
from experiments.papers.recipe import Recipe
from rl_jax.config import ExperimentConfig
from rl_jax.models.files import tokenizer_files
from rl_jax.rollouts.prompts import OverlongPromptError, PromptSet
from rl_jax.tasks import QuestionAnswer
from rl_jax.tasks.base import Example
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
  tokenizer = tokenizer_files.load_tokenizer(folder)
  limit = config.rollout.max_prompt_tokens
  if config.rollout.overlong_prompt == 'error' and isinstance(
    config.task, QuestionAnswer
  ):
    PromptSet(config.task, 'train', tokenizer, limit, 'error')
  for one in config.evaluation.sets:
    if not isinstance(one.task, QuestionAnswer):
      continue
    try:
      PromptSet(one.task, one.split, tokenizer, limit, 'error')
    except OverlongPromptError as error:
      raise ValueError(
        f'evaluation set {one.name!r}: {str(error).partition(";")[0]}; a '
        'benchmark is measured on all of its problems'
      ) from error


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
