"""The settings that the configurations of recipes have in common."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from experiments.papers.recipe import Benchmark, DataSource
from rl_jax.config import EvaluationConfig
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.models.transformer import ModelConfig
from rl_jax.tasks import (
  ChatTemplate,
  ChoiceRows,
  Mixture,
  OpenedModes,
  PlainTemplate,
  PreferenceRows,
  QuestionAnswer,
  RewardFunctions,
  WithTools,
)
from rl_jax.tasks.evaluation_set import EvaluationSet, SetAverage

AVERAGE = 'paper'  # evaluation/average/paper
# Names on the Hugging Face hub whose sizes are those of another preset.
_SIZES = {
  'rho-1b-sft-GSM8K': 'TinyLlama-1.1B',
  'Llama-3.1-Tulu-3-8B-DPO': 'Llama-3.1-8B',
  'zephyr-7b-sft-full': 'Mistral-7B',
  'Llama-3-Base-8B-SFT': 'Llama-3-8B',
  'Qwen3-4B-Base': 'Qwen3-4B',
  'Qwen3-8B-Base': 'Qwen3-8B',
  'Thinkless-1.5B-Warmup': 'DeepSeek-R1-Distill-Qwen-1.5B',
}


def model_path(name: str) -> str:
  """Returns where the files of a model are: 'models/Qwen2.5-7B'."""
  return f'models/{name.rpartition("/")[2]}'


def sizes(name: str) -> ModelConfig:
  """The preset of a model on the hub, to plan with."""
  short = name.rpartition('/')[2]
  return presets.PRESETS[_SIZES.get(short, short.removesuffix('-Instruct'))]


def model(name: str, **fields: Any) -> ModelSource:
  """A model of the hub, computed in bfloat16, with layers computed twice."""
  given: dict[str, Any] = {'compute_dtype': 'bfloat16', 'remat': True} | fields
  return ModelSource(path=model_path(name), config=sizes(name), **given)


def other_model(name: str) -> tuple[str, ...]:
  """The changes of a configuration that train another model, as VARIANTS."""
  fields = [field.name for field in dataclasses.fields(ModelConfig)]

  values = vars(sizes(name))
  changes = [
    f'model.config.{field}={values[field]!r}'
    for field in fields
    if isinstance(values[field], (bool, int, float, str))
  ]
  return (f'model.path={model_path(name)}', *changes)


def task(
  train: DataSource,
  template: ChatTemplate | PlainTemplate,
  *,
  extract: str = 'boxed',
  verifier: str = 'math',
  last_characters: int | None = None,
  bad_rows: str = 'error',
) -> QuestionAnswer:
  """Converted rows in the prompt of the paper, by its grader."""
  return QuestionAnswer(
    sources={'train': train.file},
    template=template,
    extract=extract,
    verifier=verifier,
    last_characters=last_characters,
    bad_rows=bad_rows,
  )


def with_rows(given: Any, **changes: Any) -> Any:
  """The task whose innermost task of rows has other fields."""
  if isinstance(given, (QuestionAnswer, PreferenceRows)):
    return dataclasses.replace(given, **changes)
  return dataclasses.replace(given, task=with_rows(given.task, **changes))


def rows_of(given: Any) -> tuple[str, QuestionAnswer | PreferenceRows | None]:
  """(its path in a configuration, first task of rows); None: a game."""
  found = all_rows(given)
  return found[0] if found else ('task', None)


def all_rows(
  given: Any, path: str = 'task'
) -> list[tuple[str, QuestionAnswer | PreferenceRows]]:
  """(path in a configuration, task) of the innermost tasks of rows."""
  if isinstance(given, (QuestionAnswer, PreferenceRows)):
    return [(path, given)]
  if isinstance(given, Mixture):
    parts = [
      all_rows(part.task, f'{path}.parts.{i}.task')
      for i, part in enumerate(given.parts)
    ]
    return [one for found in parts for one in found]
  if isinstance(given, (OpenedModes, RewardFunctions, WithTools)):
    return all_rows(given.task, f'{path}.task')
  return []


def evaluation(
  benchmarks: Mapping[str, Benchmark],
  train_task: Any,
  *,
  every: int,
  averaged: Sequence[str] = (),
  by_rows: bool = False,
) -> EvaluationConfig:
  """All problems of every benchmark, in the prompt and by the grader of a task.

  train_task: QuestionAnswer, or a task on one. averaged: columns of the paper's
  average, evaluation/average/paper; none: all. by_rows: they weigh as many as
  they have rows.
  """
  sets = tuple(
    EvaluationSet(
      column,
      split='test',
      task=_measured(train_task, one),
      num_samples=one.samples,
      greedy=not one.samples,
      options=bool(one.options) or None,
      temperature=one.temperature if one.samples else None,
      top_p=one.top_p if one.samples else None,
      max_response_tokens=one.max_tokens,
      limit=one.data.num_rows,
    )
    for column, one in benchmarks.items()
  )
  counted = tuple(averaged or benchmarks)
  metrics = tuple(
    f'{column}/{metric(benchmarks[column])}' for column in counted
  )
  rows = [benchmarks[column].data.rows or 0 for column in counted]
  return EvaluationConfig(
    every=every,
    split=None,
    sets=sets,
    averages=(
      SetAverage(AVERAGE, metrics, tuple(map(float, rows)) if by_rows else ()),
    ),
    intervals=True,
    num_prompts=1 << 16,
    batch_prompts=64,
  )


def _measured(train_task: Any, benchmark: Benchmark) -> Any:
  """The task on a benchmark, in its own prompt if it has one."""
  changes: dict[str, Any] = dict(benchmark.changes)
  _, own = rows_of(train_task)
  if benchmark.options:
    if isinstance(own, QuestionAnswer):
      changes.setdefault('template', own.template)
    return ChoiceRows(sources={'test': benchmark.data.file}, **changes)
  if benchmark.user:
    if own is None or not isinstance(own.template, ChatTemplate):
      raise ValueError(
        f'{benchmark.data.name}: user is of a task of rows with a chat template'
      )
    changes['template'] = dataclasses.replace(own.template, user=benchmark.user)
  return with_rows(train_task, sources={'test': benchmark.data.file}, **changes)


def published(
  table: Mapping[str, Sequence[float | None]],
  columns: Sequence[str],
  averages: Mapping[str, float] | None = None,
) -> dict[tuple[str, str], float]:
  """(row, column) -> number of a table whose rows have a number a column.

  None: the paper has none. averages: of rows, as the column 'average'.
  """
  found = {
    (row, column): number
    for row, numbers in table.items()
    for column, number in zip(columns, numbers, strict=True)
    if number is not None
  }
  own = (averages or {}).items()
  return found | {(row, 'average'): number for row, number in own}


def metric(benchmark: Benchmark) -> str:
  """The metric of a set by which its column is measured."""
  return benchmark.options or accuracy(benchmark.samples)


def accuracy(samples: int) -> str:
  """The metric of a set that is sampled so often, or decoded greedily."""
  return f'avg_at_{samples}' if samples else 'pass_at_1'
