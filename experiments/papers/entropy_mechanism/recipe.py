"""The entropy mechanism: GRPO, clip-higher, Clip-Cov and KL-Cov, 7B and 32B."""

from experiments.papers import benchmarks, settings
from experiments.papers.recipe import Benchmark, DataSource, Recipe, Row
from rl_jax.config import ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import ChatTemplate
from rl_jax.verification.pool import VerifierConfig

MODEL = 'Qwen/Qwen2.5-{}'
SYSTEM = (
  'Please reason step by step, and put your final answer within \\boxed{}.'
)
TRAIN = DataSource(
  name='dapo_math_17k',
  repository='hf:BytedTsinghua-SIA/DAPO-Math-17k',
  revision='main',
  path='data/dapo-math-17k.parquet',
  columns=benchmarks.VERL,
  question='{prompt.0.content}',
  answer='{reward_model.ground_truth}',
  prefix=benchmarks.DAPO_BEFORE,
  suffix=benchmarks.DAPO_AFTER,
  licence='Apache-2.0 (the data set)',
)


def _sampled(data):
  return Benchmark(data=data, samples=32, temperature=0.6)


EVALUATION = {
  'aime24': _sampled(benchmarks.AIME24),
  'aime25': _sampled(benchmarks.AIME25),
  'amc': _sampled(benchmarks.AMC83),
  'math500': Benchmark(data=benchmarks.MATH500),
  'olympiadbench': Benchmark(data=benchmarks.OLYMPIAD),
  'minerva': Benchmark(data=benchmarks.MINERVA),
}
COLUMNS = (
  *('aime24', 'aime25', 'amc', 'math500', 'omni_math'),
  *('olympiadbench', 'minerva', 'average'),
)
VARIANTS = {
  '32b': (
    *settings.other_model(MODEL.format('32B')),
    'iterations=144',
    'optimizer.learning_rate=1e-6',
    'mesh.fsdp=8',
    'mesh.tensor=4',
    'update.microbatch_rows=1',
  )
}
# As printed, in percent.
TABLE = {
  'grpo': (21.2, 9.6, 58.7, 78.8, 27.9, 40.7, 36.7, 38.6),
  'clip_higher': (18.1, 11.5, 56.6, 79.2, 29.8, 43.3, 40.4, 38.8),
  'clip_cov': (22.1, 15.8, 58.2, 80.4, 30.5, 44.1, 41.1, 40.4),
  'kl_cov': (22.6, 12.9, 61.4, 80.8, 29.1, 42.6, 38.2, 40.6),
  'grpo_32b': (21.8, 16.2, 69.7, 84.2, 35.2, 43.6, 45.5, 45.8),
  'clip_higher_32b': (35.6, 22.3, 69.5, 77.2, 35.1, 42.5, 43.0, 47.2),
  'clip_cov_32b': (32.3, 22.7, 67.2, 87.0, 42.0, 57.2, 46.0, 50.3),
  'kl_cov_32b': (36.8, 30.8, 74.5, 84.6, 39.1, 49.0, 46.3, 52.2),
}


def get_config(method: Method) -> ExperimentConfig:
  """256 prompts of 8 samples, eight updates, responses of 8192 tokens."""
  task = settings.task(TRAIN, ChatTemplate(system=SYSTEM))
  return ExperimentConfig(
    iterations=352,
    task=task,
    method=method,
    model=settings.model(MODEL.format('7B')),
    rollout=RolloutConfig(
      num_prompts=256,
      group_size=8,
      max_prompt_tokens=2048,
      max_response_tokens=8192,
      max_rounds=10,
      slots=256,
      overlong_prompt='skip',
    ),
    update=UpdateConfig(minibatch_prompts=32, microbatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=5e-7),
    mesh=MeshConfig(data=1, fsdp=8),
    evaluation=settings.evaluation(EVALUATION, task, every=16),
    verifier=VerifierConfig(num_workers=16, timeout_seconds=5.0),
  )


_PODS_32B = ('gpu:h100:1x4x8', 'tpu:v5p:2x4x4')
_FILTERED = ('method.group_filter=ZeroVariance()',)
ROWS = {
  'grpo': Row(method='grpo@token_mean', set=_FILTERED),
  'clip_higher': Row(method='clip_higher'),
  'clip_cov': Row(method='clip_cov'),
  'kl_cov': Row(method='kl_cov'),
  'grpo_32b': Row(
    method='grpo@token_mean', variant='32b', set=_FILTERED, pods=_PODS_32B
  ),
  'clip_higher_32b': Row(method='clip_higher', variant='32b', pods=_PODS_32B),
  'clip_cov_32b': Row(method='clip_cov', variant='32b', pods=_PODS_32B),
  'kl_cov_32b': Row(
    method='kl_cov',
    variant='32b',
    set=('method.losses.KLCov.fraction=0.0002',),
    pods=_PODS_32B,
  ),
}
RECIPE = Recipe(
  title='The entropy mechanism: Clip-Cov and KL-Cov',
  paper='arXiv 2505.22617',
  table='Qwen2.5-7B and Qwen2.5-32B on seven benchmarks',
  source=(
    'PRIME-RL/Entropy-Mechanism-of-RL @ 88505792, '
    'recipe/dapo/{7b,32b}_{baseline,cliphigher,clip_cov,kl_cov}.sh'
  ),
  models=(MODEL.format('7B'), MODEL.format('32B')),
  data=(TRAIN,),
  config=get_config,
  rows=ROWS,
  columns=COLUMNS,
  average='average',
  evaluation=EVALUATION,
  missing={
    'omni_math': 'no released file of its problems was found, nor which of '
    'those of OMNI-MATH they are'
  },
  published=settings.published(TABLE, COLUMNS),
  protocol=(
    'mean of 32 samples at temperature 0.6 for AIME and AMC, greedy otherwise; '
    '8192 tokens'
  ),
  follows='paper',
  stop='352 rollouts (7B), 144 (32B), where the curves of the paper end',
  prompts=(
    (SYSTEM, 'Qwen2.5-Math, chat template', 'Apache-2.0'),
    (
      benchmarks.DAPO_BEFORE + '{question}' + benchmarks.DAPO_AFTER,
      'BytedTsinghua-SIA/DAPO @ 33fe3176, eval/aime-2024.parquet; removed',
      'Apache-2.0',
    ),
  ),
  hardware='7B: one node of 8 GPUs; 32B: 4 nodes; type not stated',
  hours='10 to 15 minutes a rollout (7B): 59 to 88 for 352',
  transcribed=('the numbers of rollouts, read at the axis of a figure',),
  unverified=(
    'the system prompt, which no released file holds',
    'the names of the models on the hub',
    'that AMC is the set of 83 problems',
    'licences of the data set and of the two prompts',
  ),
  weaker=(
    'no average of ours: it would lack OMNI-MATH',
    'answers are graded by `math`, which accepts and refuses some forms that '
    'prime_math does not',
  ),
  traps=(
    'The code ranks tokens within a microbatch, the paper within the batch; '
    'this recipe ranks them within the minibatch.',
    'With one update a rollout KL-Cov does nothing.',
    'The released scripts pass a dual clip of 10 that is commented out.',
    'The average of the paper is not the mean of its row: 38.6, not 39.1.',
    'Training was stopped by hand; the number of epochs does not end it.',
    'The file of 17,000 problems has each about a hundred times.',
  ),
  chat=benchmarks.chatml('{question}', SYSTEM),
  pods=('gpu:h100:1x1x8', 'tpu:v5p:2x2x2'),
)
