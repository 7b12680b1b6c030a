"""ProcessBench: released models of steps, measured."""

from experiments.papers import settings
from experiments.papers.recipe import ByHand, DataSource, Recipe

SYSTEM = (
  'Please reason step by step, and put your final answer within \\boxed{}.'
)
SPLITS = {'gsm8k': 400, 'math': 1000, 'olympiadbench': 1000, 'omnimath': 1000}
COLUMNS = (*SPLITS, 'average')


def _rows_of(split, rows):
  return DataSource(
    name=f'process_bench_{split}',
    repository='hf:Qwen/ProcessBench',
    revision='main',
    path=f'{split}.json',
    columns=('problem', 'steps', 'final_answer_correct', 'label'),
    rows=rows,
    question='',
    answer='',
    keep=('problem', 'steps', 'final_answer_correct', 'label'),
    repeats=True,
  )


DATA = tuple(_rows_of(*one) for one in SPLITS.items())
_QWEN = f"--chat '--step_token=<extra_0>' '--system={SYSTEM}'"
_LABELS = '--step_labels=+,-'
# Name -> (model, flags).
MODELS = {
  'qwen2p5_math_prm_7b': ('Qwen/Qwen2.5-Math-PRM-7B', _QWEN),
  'qwen2p5_math_7b_prm800k': ('Qwen/Qwen2.5-Math-7B-PRM800K', _QWEN),
  'qwen2p5_math_prm_72b': ('Qwen/Qwen2.5-Math-PRM-72B', _QWEN),
  'rlhflow_mistral_8b': ('RLHFlow/Llama3.1-8B-PRM-Mistral-Data', _LABELS),
  'rlhflow_deepseek_8b': ('RLHFlow/Llama3.1-8B-PRM-Deepseek-Data', _LABELS),
}
TABLE = {
  'math_shepherd_7b': (47.9, 29.5, 24.8, 23.8, 31.5),
  'rlhflow_mistral_8b': (50.4, 33.4, 13.8, 15.8, 28.4),
  'rlhflow_deepseek_8b': (38.8, 33.8, 16.9, 16.9, 26.6),
  'skywork_prm_1p5b': (59.0, 48.0, 19.3, 19.2, 36.4),
  'skywork_prm_7b': (70.8, 53.6, 22.9, 21.0, 42.1),
  'qwen2p5_math_7b_shepherd': (62.5, 31.6, 13.7, 7.7, 28.9),
  'qwen2p5_math_7b_prm800k': (68.2, 62.6, 50.7, 44.3, 56.5),
  'qwen2p5_math_prm_7b': (82.4, 77.6, 67.5, 66.3, 73.5),
}
AVERAGES = {'qwen2p5_math_prm_72b': 78.3}


def _command(model, flags):
  """All splits, one after the other."""
  return (
    f'for split in {" ".join(SPLITS)}; do python -m '
    f'experiments.evaluate_reward --steps --step_end= {flags} '
    f'--reward_model={settings.model_path(model)} '
    '--data=data/recipes/process_bench_$split.jsonl; done'
  )


def _by_hand():
  """A sum of two steps, of which the second one is right or wrong."""
  return tuple(
    ByHand(
      row={
        'problem': f'What is {n} + 1 + 1?',
        'steps': [f'{n} + 1 = {n + 1}.', f'So it is {n + 2 + wrong}.'],
        'final_answer_correct': not wrong,
        'label': 1 if wrong else -1,
      }
    )
    for n in range(3)
    for wrong in (0, 1)
  )


RECIPE = Recipe(
  title='Models of steps on ProcessBench',
  paper='arXiv 2412.06559 and arXiv 2501.07301',
  table='Table 7 of arXiv 2501.07301: F1 of the first wrong step',
  source=(
    'QwenLM/ProcessBench @ e8024636, code/run_eval.py and '
    'code/run_eval_prm_rlhflow.py'
  ),
  models=tuple(model for model, _ in MODELS.values()),
  data=DATA,
  measured={name: _command(*one) for name, one in MODELS.items()},
  columns=COLUMNS,
  evaluation={},
  missing={
    column: 'printed by experiments.evaluate_reward' for column in COLUMNS
  },
  published=settings.published(TABLE, COLUMNS, AVERAGES),
  protocol=(
    'the first step with a score below 0.5, or none; F1 of the accuracies on '
    'responses with and without an error; the plain mean of four splits'
  ),
  follows='released code',
  stop='nothing is trained',
  prompts=((SYSTEM, 'the card of Qwen/Qwen2.5-Math-PRM-7B', 'Apache-2.0'),),
  left_out={
    'math_shepherd_7b': 'the form of its steps was not read',
    'skywork_prm_1p5b': 'its head and its form of steps were not read',
    'skywork_prm_7b': 'its head and its form of steps were not read',
    'qwen2p5_math_7b_shepherd': 'no name of released weights was read',
  },
  transcribed=('the table',),
  unverified=(
    'numbers of rows of the splits, 3,400 in all, and the paths of the files',
    'names of the models on the hub, and of the tensors of their heads',
    'the message of the system, and <extra_0> after every step',
  ),
  weaker=(
    'steps are judged by the probability of + among + and -; the released '
    'code stops at the first greedy token that is not +',
    'no weights of these models have been read here',
  ),
  traps=(
    'RLHFlow: the first step is in the turn of the problem.',
    'A split counts as F1 of two accuracies, not as an accuracy.',
  ),
  by_hand={source.name: _by_hand() for source in DATA},
)
