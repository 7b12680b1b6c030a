"""What the configurations of recipes have in common."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from experiments.papers.recipe import Benchmark, DataSource
from rl_jax.config import EvaluationConfig
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.models.transformer import ModelConfig
from rl_jax.tasks import ChatTemplate, PlainTemplate, QuestionAnswer
from rl_jax.tasks.evaluation_set import EvaluationSet

# Names on the Hugging Face hub whose sizes are those of another preset.
_SIZES = {'rho-1b-sft-GSM8K': 'TinyLlama-1.1B'}


def model_path(name: str) -> str:
  """Where the files of a model are: 'models/Qwen2.5-7B'."""
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
) -> QuestionAnswer:
  """Converted rows in the prompt of the paper, by its grader."""
  return QuestionAnswer(
    sources={'train': train.file},
    template=template,
    extract=extract,
    verifier=verifier,
  )


def evaluation(
  benchmarks: Mapping[str, Benchmark], train_task: QuestionAnswer, *, every: int
) -> EvaluationConfig:
  """All problems of every benchmark, in the prompt and by the grader of a task.

  A configuration has one decoding for all sets: that of the benchmark with most
  samples. The greedy response of each is measured, too.
  """
  first = most_samples(benchmarks)
  sets = tuple(
    EvaluationSet(
      column,
      split='test',
      task=dataclasses.replace(train_task, sources={'test': one.data.file}),
    )
    for column, one in benchmarks.items()
  )
  return EvaluationConfig(
    every=every,
    split=None,
    sets=sets,
    num_prompts=2048,
    batch_prompts=64,
    num_samples=first.samples,
    temperature=first.temperature,
    top_p=first.top_p,
    max_response_tokens=first.max_tokens,
  )


def most_samples(benchmarks: Mapping[str, Benchmark]) -> Benchmark:
  """The benchmark whose decoding all have."""
  return max(benchmarks.values(), key=_samples)


def _samples(benchmark: Benchmark) -> int:
  return benchmark.samples


def metric(benchmarks: Mapping[str, Benchmark], column: str) -> str:
  """The metric of metrics.jsonl that a column of the table shows."""
  if not benchmarks[column].samples:
    return f'evaluation/{column}/pass_at_1'
  return f'evaluation/{column}/avg_at_{most_samples(benchmarks).samples}'
