"""Thinkless: DeGRPO on a model with two modes, 1.5B."""

from experiments.papers import benchmarks, settings
from experiments.papers.recipe import Benchmark, DataSource, Recipe, Row
from rl_jax.config import ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import ChatTemplate, OpenedModes
from rl_jax.verification.pool import VerifierConfig

MODEL = 'Vinnnf/Thinkless-1.5B-Warmup'
USER = '{question}'
TRAIN = DataSource(
  name='deepscaler_preview',
  repository='hf:agentica-org/DeepScaleR-Preview-Dataset',
  revision='main',
  path='deepscaler.json',
  columns=('problem', 'answer'),
  rows=40315,
  question='{problem}',
  answer='{answer}',
  licence='MIT (the data set)',
)


def _sampled(data):
  """Five runs there, five samples here."""
  return Benchmark(data=data, samples=5, temperature=0.6)


EVALUATION = {
  'aime24': _sampled(benchmarks.AIME24),
  'math500': _sampled(benchmarks.MATH500),
  'gsm8k': _sampled(benchmarks.GSM8K),
}
COLUMNS = ('aime24', 'minerva_algebra', 'math500', 'gsm8k')
TABLE = {
  'thinkless_paper': (0.2733, 0.9459, 0.8184, 0.8418),
  'thinkless': (0.2733, 0.9483, 0.8360, 0.8368),
}


def get_config(method: Method) -> ExperimentConfig:
  """128 prompts of 8 samples, two updates, responses of 24,576 tokens."""
  task = OpenedModes(
    task=settings.task(TRAIN, ChatTemplate(user=USER), bad_rows='skip'),
    openings={'short': '<short>', 'think': '<think>'},
  )
  return ExperimentConfig(
    iterations=480,
    task=task,
    method=method,
    model=settings.model(MODEL),
    rollout=RolloutConfig(
      num_prompts=128,
      group_size=8,
      max_prompt_tokens=1024,
      max_response_tokens=24576,
      temperature=0.6,
      overlong_prompt='skip',
      slots=512,
    ),
    update=UpdateConfig(minibatch_prompts=64, microbatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=1e-6),
    mesh=MeshConfig(data=1, fsdp=8),
    evaluation=settings.evaluation(
      EVALUATION, settings.with_rows(task, bad_rows='error'), every=20
    ),
    verifier=VerifierConfig(num_workers=16, timeout_seconds=5.0),
  )


RECIPE = Recipe(
  title='Thinkless (DeGRPO), 1.5B',
  paper='arXiv 2505.13379',
  table='README: paper and released code',
  source=(
    'VainF/Thinkless @ aa225d2, run_train_rl.sh, '
    'scripts/rl/thinkless_1.5b_deepscaler.sh'
  ),
  models=(MODEL,),
  data=(TRAIN,),
  config=get_config,
  rows={'thinkless': Row(method='degrpo')},
  columns=COLUMNS,
  evaluation=EVALUATION,
  missing={'minerva_algebra': 'its source and count were not verified'},
  published=settings.published(TABLE, COLUMNS),
  protocol='five runs by lm_eval; answers are extracted by the released code',
  follows='released code',
  stop='300 rollouts, then 180 resumed',
  prompts=((USER, 'VainF/Thinkless @ aa225d2: no instruction', 'not stated'),),
  hardware='8 GPUs; a comment says 4 H100',
  left_out={
    'thinkless_paper': 'the run of the paper; the released code is followed'
  },
  unverified=(
    'temperature 0.6 of the evaluation, and its limit on tokens',
    'the path and the columns of the data set',
    'whether <short> and <think> are special tokens, which verifiers would not '
    'read',
  ),
  weaker=(
    'a right response with thoughts is worth 0.5 throughout; the last 180 '
    'rollouts have 0.8: --set=method.shaping.ModeRewards.thought=0.8',
    'the warm-up, a distillation of both modes, is taken as released',
    'no instruction asks for a box, in which the answer is searched',
  ),
  traps=(
    'An instruction to box the answer is commented out in the code.',
    'The control token has the mean over rows times 0.001, other tokens the '
    'mean over tokens; the paper averages these by row.',
  ),
  pods=('gpu:h100:1x1x8', 'tpu:v5p:2x2x2'),
)
