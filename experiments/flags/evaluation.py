"""Flags of an evaluation, and the configuration that they describe.

The fields are those of a run's configuration, so that what no flag says is as
in the run, and --set changes the rest.
"""

import dataclasses
import functools
import os

from absl import flags

from experiments.flags import configuration, fields
from rl_jax.config import (
  EvaluationConfig,
  ExperimentConfig,
)
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import (
  ChatTemplate,
  ChoiceRows,
  PlainTemplate,
  QuestionAnswer,
  RewardFunctions,
)
from rl_jax.tasks.rows import is_source, only_field

# Without a run or a configuration that says otherwise.
NEW_TOKENS, PROMPT_TOKENS = 64, 512
_ANSWERS = ('question', 'answer', 'gold', 'extract', 'verifier')
_ROWS = (
  'rows are read from .jsonl, .json, .csv, .tsv, .parquet and .arrow files, '
  'folders of Parquet files or of `datasets.save_to_disk`, and tfds:NAME'
)
_PROMPTS = ('template', 'chat', 'prefill')
_OF_OPTIONS = ('question', 'extract', 'bad_rows')


def define_flags(values: flags.FlagValues = flags.FLAGS) -> None:
  """Defines all of them; None is a value that is not given."""
  own = {'flag_values': values}
  string = functools.partial(flags.DEFINE_string, **own)
  integer = functools.partial(flags.DEFINE_integer, **own)
  number = functools.partial(flags.DEFINE_float, **own)
  several = functools.partial(flags.DEFINE_multi_string, **own)
  string('data', None, 'Configuration or data; by default the task of the run.')
  string('split', 'test', 'Split of the task.')
  string('question', None, 'Of a row: {question} or {prompt}, or as the run.')
  string('answer', None, "Of a row: {answer}; '' for none, or as the run.")
  text = (
    'Of a row: field with a list of options, or fields a,b,c with one each;'
  )
  text += ' --answer is the field with the place or letter of the right one, or'
  text += " '' for the first. Options are compared by log-likelihood."
  string('options', None, text)
  string('gold', None, "'hash' for GSM8K's ####; whole, or as the run.")
  string('template', None, 'Of the prompt: {question}, or as the run has it.')
  text = 'Apply the chat template to the prompt.'
  flags.DEFINE_bool('chat', None, text, **own)
  string('prefill', None, 'Start of the response, with a chat template.')
  string('extract', None, 'Answer extraction: last_number, or as the run.')
  text = 'number, decimal, math, text or expression; number, or as the run.'
  string('verifier', None, text)
  string('bad_rows', None, "Of the data: 'error' or 'skip', which counts them.")
  integer('num_samples', 0, 'Samples for pass@k.')
  integer('max_new_tokens', None, f'Per response: {NEW_TOKENS}, or as the run.')
  integer('max_prompt_tokens', None, 'A longer prompt is an error.')
  integer('limit', 1000, 'Maximum number of rows.')
  integer('batch_prompts', 64, 'Prompts per batch.')
  number('temperature', None, 'Of sampling: 1, or as the run.')
  integer('top_k', None, 'Likeliest tokens; no transforms of the run.')
  number('top_p', None, 'Mass of tokens; no transforms of the run.')
  several('stop', None, r"Text that ends a response, as '\n\n'; '' is none.")
  text = 'Adds votes of samples by self-certainty to this power, as 0.5.'
  number('borda_power', None, text)
  integer('num_workers', None, 'Verifier processes: 1, or as the run.')
  several('set', [], 'PATH=LITERAL of any other field.')


def from_flags(
  run: ExperimentConfig | None, values: flags.FlagValues = flags.FLAGS
) -> ExperimentConfig:
  """The configuration of the run, or of --data, changed by flags.

  Its mesh has all devices: that of the run is of its machine.
  """
  config = _with_task(run, values)
  stop = values.stop
  if stop is not None:
    stop = tuple(configuration.unescaped(text) for text in stop if text)
  own = config.evaluation
  config = dataclasses.replace(
    config,
    mesh=MeshConfig(),
    rollout=_given(
      config.rollout, stop=stop, max_prompt_tokens=values.max_prompt_tokens
    ),
    evaluation=_given(
      EvaluationConfig(
        split=values.split,
        options=own.options or values.options is not None,
        num_prompts=values.limit,
        num_samples=values.num_samples,
        batch_prompts=values.batch_prompts,
        temperature=own.temperature,
        top_k=own.top_k,
        top_p=own.top_p,
        transforms=own.transforms,
        beams=own.beams,
        max_response_tokens=own.max_response_tokens,
        borda_power=own.borda_power,
      ),
      temperature=values.temperature,
      top_k=values.top_k,
      top_p=values.top_p,
      max_response_tokens=values.max_new_tokens,
      borda_power=values.borda_power,
    ),
    verifier=_given(
      # 0 workers, once the default, have no time limit.
      dataclasses.replace(
        config.verifier,
        num_workers=config.verifier.num_workers or None,
        on_device=False,
      ),
      num_workers=values.num_workers,
    ),
  )
  return configuration.changed(config, fields.once(values.set))


def _with_task(run, values):
  """The run, the configuration of --data, or one of the library's defaults."""
  if values.options is not None and not (
    values.data and is_source(values.data)
  ):
    raise ValueError(
      f'--options={values.options} are fields of rows: give --data=FILE; of a '
      'configuration whose task has options: --set=evaluation.options=True'
    )
  data, method = values.data, configuration.load_method('reinforce')
  if data is None:
    if run is None:
      raise ValueError(_no_task(values))
    return dataclasses.replace(run, task=_changed_task(run.task, values))
  if not is_source(data):
    named = _named(data, method)
    task = _changed_task(named.task, values)
    if run is not None:  # the task with its own limits of time and of turns
      rollout = dataclasses.replace(run.rollout, turns=named.rollout.turns)
      named = dataclasses.replace(run, verifier=named.verifier, rollout=rollout)
    return dataclasses.replace(named, task=task)
  own = None if run is None else run.task
  if values.options is not None:
    task = _of_options(own, {values.split: data}, values)
  else:
    task = _changed_task(_of_data(own, {values.split: data}), values)
  if run is None:
    rollout = RolloutConfig(
      max_prompt_tokens=PROMPT_TOKENS, max_response_tokens=NEW_TOKENS
    )
    return ExperimentConfig(task=task, method=method, rollout=rollout)
  prompt = max(run.rollout.max_prompt_tokens, PROMPT_TOKENS)
  rollout = _given(run.rollout, max_prompt_tokens=prompt)
  rollout = dataclasses.replace(rollout, turns=None)  # data have none
  return dataclasses.replace(run, task=task, rollout=rollout)


def _of_data(own, sources):
  """The task of a run with other data; of a run without data its defaults."""
  if isinstance(own, RewardFunctions):
    inner = _of_data(own.task, sources)
    if isinstance(own.task, QuestionAnswer):
      return dataclasses.replace(own, task=inner)
    return inner
  if not isinstance(own, QuestionAnswer):
    template = PlainTemplate(text='{question}')
    return QuestionAnswer(sources=sources, template=template)
  return dataclasses.replace(
    own, sources=sources, hold_out='none', num_validation=0, num_test=0
  )


def _of_options(own, sources, values):
  """The task of data with options, in the prompt of a run on questions."""
  for name in ('gold', 'verifier'):
    if values[name].value is not None:
      raise ValueError(f'--{name} is not of --options, which are compared')
  names = tuple(values.options.split(','))
  answer = '{answer}' if values.answer is None else values.answer
  gold = only_field(answer) if answer else ''
  if gold is None:
    raise ValueError(
      f'--answer={answer}: with --options it is one field, as {{answer}}, or '
      "'' where the first option is right"
    )
  template = PlainTemplate('{question}')
  prompt = {name: values[name].value for name in _PROMPTS}
  prompt = {k: v for k, v in prompt.items() if v is not None}
  task = ChoiceRows(
    sources=sources,
    options=names[0] if len(names) == 1 else names,
    gold=gold,
    template=own.template if isinstance(own, QuestionAnswer) else template,
  )
  if prompt:
    task = dataclasses.replace(
      task, template=_template(task.template, **prompt)
    )
  return _given(task, **{name: values[name].value for name in _OF_OPTIONS})


def _no_task(values):
  """Why neither --data nor --checkpoint says what to evaluate."""
  path = values['checkpoint'].value if 'checkpoint' in values else None
  if path and '://' not in path and not os.path.exists(path):
    return f'--checkpoint={path} does not exist'
  which = f'--checkpoint={path}' if path else '--checkpoint'
  return (
    f'--data is missing: {which} is not a work directory of a run, whose task '
    'would be taken, or it holds no checkpoint yet'
  )


def _named(data, method):
  """The configuration that --data names."""
  ending = os.path.splitext(data)[1]
  if ending not in ('', '.py', '.json') and os.path.isfile(data):
    raise ValueError(f'--data={data} cannot be read: {_ROWS}')
  try:
    return configuration.load_config(data, method)
  except ValueError as error:
    if ending != '.json':
      raise
    raise ValueError(
      f'{error}; of --data a .json file is a configuration; {_ROWS}'
    ) from error


def _changed_task(task, values):
  """The task with the data, templates and answers that flags give.

  Raises ValueError for a flag that the task has no field for.
  """
  if isinstance(task, RewardFunctions):
    inner = _changed_task(task.task, values)
    return dataclasses.replace(task, task=inner)
  changes = {name: values[name].value for name in (*_ANSWERS, 'bad_rows')}
  prompt = {name: values[name].value for name in _PROMPTS}
  changes = {k: v for k, v in changes.items() if v is not None}
  prompt = {k: v for k, v in prompt.items() if v is not None}
  known = {field.name for field in dataclasses.fields(task)}
  for name in (*changes, *prompt):
    field = 'template' if name in prompt else name
    if field not in known:
      raise ValueError(f'--{name}: {type(task).__name__} has no such field')
  if prompt:
    changes['template'] = _template(task.template, **prompt)
  return dataclasses.replace(task, **changes)


def _template(old, template=None, chat=None, prefill=None):
  """The template that flags change, or another of its kind."""
  chat = isinstance(old, ChatTemplate) if chat is None else chat
  if chat:
    new = old if isinstance(old, ChatTemplate) else ChatTemplate()
    return _given(new, user=template, prefill=prefill)
  if prefill:
    raise ValueError('--prefill needs --chat: there is no turn to begin')
  new = old if isinstance(old, PlainTemplate) else PlainTemplate('{question}')
  return _given(new, text=template)


def _given(section, **values):
  """The section with those `values` that are not None."""
  given = {name: x for name, x in values.items() if x is not None}
  return dataclasses.replace(section, **given)
