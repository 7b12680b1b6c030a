"""RewardBench 2: released reward models, measured."""

from experiments.papers import settings
from experiments.papers.recipe import ByHand, DataSource, Recipe

PAIRS = DataSource(
  name='reward_bench_2',
  repository='hf:allenai/reward-bench-2',
  revision='main',
  path='data/test-00000-of-00001.parquet',
  columns=('id', 'prompt', 'chosen', 'rejected', 'subset'),
  rows=1865,
  question='',
  answer='',
  keep=('id', 'prompt', 'chosen', 'rejected', 'subset'),
  repeats=True,
)
COLUMNS = (
  *('factuality', 'precise_if', 'math', 'safety', 'focus', 'ties'),
  'average',
)
NOT_READ = {
  column: 'printed by experiments.evaluate_reward' for column in COLUMNS
}
_SKYWORK = 'Skywork/Skywork-Reward-'
MODELS = {
  'skywork_v2_qwen3_0p6b': _SKYWORK + 'V2-Qwen3-0.6B',
  'skywork_v2_qwen3_1p7b': _SKYWORK + 'V2-Qwen3-1.7B',
  'skywork_v2_qwen3_4b': _SKYWORK + 'V2-Qwen3-4B',
  'skywork_v2_qwen3_8b': _SKYWORK + 'V2-Qwen3-8B',
  'skywork_v2_llama_3p2_1b': _SKYWORK + 'V2-Llama-3.2-1B',
  'skywork_v2_llama_3p2_3b': _SKYWORK + 'V2-Llama-3.2-3B',
  'skywork_v2_llama_3p1_8b': _SKYWORK + 'V2-Llama-3.1-8B',
  'skywork_llama_3p1_8b': _SKYWORK + 'Llama-3.1-8B',
  'skywork_llama_3p1_8b_v0p2': _SKYWORK + 'Llama-3.1-8B-v0.2',
  'rb2_llama_3p1_8b_instruct': 'allenai/Llama-3.1-8B-Instruct-RM-RB2',
  'rb2_tulu_3_8b_sft': 'allenai/Llama-3.1-Tulu-3-8B-SFT-RM-RB2',
}
TABLE = {
  'skywork_llama_3p1_8b': (69.9, 42.5, 62.8, 93.3, 96.2, 74.1, 73.1),
  'rb2_llama_3p1_8b_instruct': (74.3, 44.4, 61.7, 89.6, 90.7, 76.4, 72.8),
  'skywork_llama_3p1_8b_v0p2': (69.7, 40.6, 60.1, 94.2, 94.1, 71.7, 71.7),
  'rb2_tulu_3_8b_sft': (73.3, 38.8, 57.9, 89.8, 88.9, 60.6, 68.2),
}
AVERAGES = {
  'skywork_v2_qwen3_0p6b': 61.3,
  'skywork_v2_qwen3_1p7b': 68.3,
  'skywork_v2_qwen3_4b': 75.5,
  'skywork_v2_qwen3_8b': 78.2,
  'skywork_v2_llama_3p2_1b': 64.3,
  'skywork_v2_llama_3p2_3b': 74.7,
  'skywork_v2_llama_3p1_8b': 84.1,
}


def _command(model):
  return (
    f'python -m experiments.evaluate_reward --data={PAIRS.file} --chat '
    f'--reward_model={settings.model_path(model)}'
  )


RECIPE = Recipe(
  title='Reward models on RewardBench 2',
  paper='arXiv 2506.01937 and arXiv 2507.01352',
  table='Table 3, and the averages of Skywork-Reward-V2',
  source=(
    'allenai/reward-bench @ 05a9005e, scripts/run_v2.py, rewardbench/utils.py, '
    'paper-v2.pdf'
  ),
  models=tuple(MODELS.values()),
  data=(PAIRS,),
  measured={name: _command(model) for name, model in MODELS.items()},
  columns=COLUMNS,
  evaluation={},
  missing=NOT_READ,
  published=settings.published(TABLE, COLUMNS, AVERAGES),
  protocol=(
    'best of four by the score of prompt and response in the chat template; '
    'ties by their formula; the plain mean of six subsets'
  ),
  follows='released code',
  stop='nothing is trained',
  prompts=(
    (
      'the chat template of the model',
      'allenai/reward-bench @ 05a9005e, scripts/run_v2.py',
      'Apache-2.0',
    ),
  ),
  hardware='one A100',
  hours='8 minutes for a model of 8B',
  transcribed=('averages of Skywork-Reward-V2', 'minutes'),
  unverified=(
    'names of Skywork models on the hub, the path of the file, and the columns '
    'but for id, prompt, chosen and rejected',
  ),
  weaker=(
    'responses longer than 2048 tokens are cut there, here scored whole',
    'numbers are float32 on one device; there bfloat16',
  ),
  traps=(
    'The data set has 1,865 rows, where the text of the paper also says 1,876.',
    'RewardBench 1 has other subsets, sections and weights.',
  ),
  by_hand={
    'reward_bench_2': tuple(
      ByHand(
        row={
          'id': str(n),
          'prompt': f'What is {n} + 1?',
          'chosen': [f'It is {n + 1}.'],
          'rejected': [f'It is {n + k}.' for k in (2, 3, 4)],
          'subset': 'Math',
        }
      )
      for n in range(4)
    )
  },
)
