"""GHPO: hints for problems that no sample solves, Qwen2.5-Math-7B."""

from experiments.papers import benchmarks, settings
from experiments.papers.recipe import (
  Benchmark,
  ByHand,
  DataSource,
  Recipe,
  Row,
)
from rl_jax.config import ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import ChatTemplate
from rl_jax.verification.pool import VerifierConfig

MODEL = 'Qwen/Qwen2.5-Math-7B'
SYSTEM = (
  'Think within <think> and </think>, then give the answer in \\boxed{} within '
  '<answer> and </answer>.'
)
TRAIN = DataSource(
  name='ghpo_train',
  repository='hf:hkgc/math3to5_olympiads_aime',
  revision='main',
  path='data/train-00000-of-00001.parquet',
  columns=('problem', 'solution'),
  question='{problem}',
  answer='{solution}',
)
EVALUATION = {
  'math500': Benchmark(data=benchmarks.MATH500),
  'amc23': Benchmark(data=benchmarks.AMC23),
  'minerva': Benchmark(data=benchmarks.MINERVA),
  'olympiadbench': Benchmark(data=benchmarks.OLYMPIAD),
}
COLUMNS = (
  *('math500', 'amc23', 'gpqa_diamond', 'minerva', 'olympiadbench'),
  'average',
)
TABLE = {
  'model': (69.4, 40.0, 21.7, 19.5, 34.0, 32.4),
  'grpo': (75.2, 47.5, 30.8, 31.2, 40.8, 39.8),
  'ghpo': (78.6, 57.5, 39.4, 34.6, 41.5, 44.2),
}


def get_config(method: Method) -> ExperimentConfig:
  """112 prompts of 8 samples, responses of 2048 tokens."""
  task = settings.task(TRAIN, ChatTemplate(system=SYSTEM), bad_rows='skip')
  task = settings.with_rows(task, gold='boxed')
  measured = settings.with_rows(task, gold='whole', bad_rows='error')
  return ExperimentConfig(
    iterations=500,
    task=task,
    method=method,
    model=settings.model(MODEL),
    rollout=RolloutConfig(
      num_prompts=112,
      group_size=8,
      max_prompt_tokens=2048,
      max_response_tokens=2048,
      overlong_prompt='skip',
    ),
    update=UpdateConfig(microbatch_prompts=16),
    optimizer=OptimizerConfig(
      learning_rate=1e-6, schedule='cosine', warmup_steps=50
    ),
    mesh=MeshConfig(data=1, fsdp=8),
    evaluation=settings.evaluation(EVALUATION, measured, every=50),
    verifier=VerifierConfig(num_workers=16, timeout_seconds=5.0),
  )


RECIPE = Recipe(
  title='GHPO on Qwen2.5-Math-7B',
  paper='arXiv 2507.10628',
  table='figure of the repository: six benchmarks',
  source='hkgc-1/GHPO @ af0a7dd, recipes and src/ghpo/ghpo_trainer.py',
  models=(MODEL,),
  data=(TRAIN,),
  config=get_config,
  rows={
    'ghpo': Row(method='ghpo'),
    'grpo': Row(method='grpo@token_mean'),
  },
  columns=COLUMNS,
  average='average',
  evaluation=EVALUATION,
  missing={'gpqa_diamond': 'its source and count were not verified'},
  published=settings.published(TABLE, COLUMNS),
  protocol='not read; greedy, one response is assumed',
  follows='released code',
  stop='5 epochs in the settings; 500 rollouts here',
  prompts=((SYSTEM, 'written here; the released text asks for the same', '-'),),
  transcribed=('the table, from a figure',),
  unverified=(
    'the columns, rows and path of the data set, but for problem',
    'the text of the system message',
    'the number of prompts of a rollout, and 500 rollouts',
    'the decoding of the evaluation, and the sixth set that the average has',
    'the identifier of the paper',
  ),
  weaker=(
    'the reward is accuracy; there a format reward of 0.5 is added',
    'hints are cut by lines of the solution, there by characters',
  ),
  traps=(
    'The figure says Qwen2.5-7B; the released settings are of Qwen2.5-Math-7B.',
    'The average of the figure is not the mean of the five printed numbers.',
  ),
  pods=('gpu:h100:1x1x8', 'tpu:v5p:2x2x2'),
  by_hand={
    'ghpo_train': tuple(
      ByHand(
        row={
          'problem': f'What is {n} + {n}?',
          'solution': f'Twice {n}.\nThat is {2 * n}.\nSo \\boxed{{{2 * n}}}.',
        },
        right=f'So \\boxed{{{2 * n}}}.',
        wrong=f'So \\boxed{{{2 * n + 1}}}.',
      )
      for n in range(1, 7)
    )
  },
)
