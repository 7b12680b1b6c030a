"""RLHFlow's iterative DPO on Llama-3-8B: a released model, measured."""

from experiments.papers import benchmarks, settings
from experiments.papers.recipe import Recipe

SFT = 'RLHFlow/LLaMA3-SFT-v2'
COLUMNS = (
  'alpaca_eval_lc',
  'math',
  'gsm8k',
  'humaneval',
  'humaneval_plus',
  'mmlu',
  'arc_challenge',
  'truthfulqa',
)
TABLE = {
  'sft_v2': (12.66, 41.1, 83.4, 66.5, 61.6, 64.8, 59.98, 53.93),
  'iteration_1': (None, 43.0, 85.3, 63.4, 58.5, 64.94, 63.4, 59.55),
  'iteration_2': (None, 43.8, 84.8, 67.1, 59.1, 64.77, 65.1, 63.31),
  'iteration_3': (31.31, 44.4, 85.3, 68.3, 62.2, 64.66, 65.96, 64.73),
}


def _command():
  """The options of ARC-Challenge in the prompt of lm-eval."""
  fields = benchmarks.ARC_FIELDS
  return (
    f'python -m experiments.evaluate --checkpoint={settings.model_path(SFT)} '
    f'--data={benchmarks.ARC_CHALLENGE.file} --options={fields["options"]} '
    f'--answer={{{fields["gold"]}}} --set=task.labels={fields["labels"]} '
    "--template=$'Question: {question}\\nAnswer:' --limit=2000"
  )


RECIPE = Recipe(
  title='Iterative DPO of RLHFlow on Llama-3-8B',
  paper='arXiv 2405.07863',
  table='README: academic benchmarks of the models of version 2',
  source='RLHFlow/Online-RLHF @ 3a00ed83, README.md, run_loop2.sh',
  models=(SFT,),
  data=(benchmarks.ARC_CHALLENGE,),
  measured={'sft_v2': _command()},
  columns=COLUMNS,
  evaluation={},
  missing={
    'alpaca_eval_lc': 'a commercial model judges the responses',
    'math': 'the worked examples of its prompt were not read',
    'gsm8k': 'the worked examples of its prompt were not read',
    'humaneval': 'its problems are not a suite of this package',
    'humaneval_plus': 'its problems are not a suite of this package',
    'mmlu': 'its 57 subjects with worked examples are not a suite of this '
    'package',
    'arc_challenge': 'printed by experiments.evaluate, as acc_per_character',
    'truthfulqa': 'its score is the probability of several right options',
  },
  published=settings.published(TABLE, COLUMNS),
  protocol=(
    'ARC-Challenge: the option with the largest log-likelihood, divided by its '
    'characters; the README does not say how many worked examples there are'
  ),
  follows='released code',
  stop='nothing is trained',
  prompts=(
    (
      'Question: {question}\nAnswer:',
      'lm-evaluation-harness, task arc_challenge',
      'MIT',
    ),
  ),
  left_out={
    f'iteration_{i}': 'no name of its released weights was read; its training '
    'is a pipeline of samples, scores and DPO (configs/pipelines)'
    for i in (1, 2, 3)
  },
  unverified=(
    'that the number of ARC-Challenge is divided by characters (acc_norm)',
    'the path of its file; cards say that it has 1,172 rows',
  ),
  weaker=(
    'questions have no worked examples in front of them; with 25, as in the '
    'Open LLM Leaderboard, accuracies are higher',
    'these weights have not been read here',
  ),
  traps=(
    'Labels of some rows of ARC are numbers: the key 1 is the first option.',
    'One script samples 4 responses, another one 8; the table is of 4.',
  ),
  by_hand={'arc_challenge': benchmarks.ARC_BY_HAND},
)
