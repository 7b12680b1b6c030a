"""DisCO on R1-Distill-Qwen: two scores, and four methods beside them."""

from experiments.papers import benchmarks, settings
from experiments.papers.recipe import Benchmark, Recipe, Row
from rl_jax.config import ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import ChatTemplate
from rl_jax.verification.pool import VerifierConfig

MODEL = 'deepseek-ai/DeepSeek-R1-Distill-Qwen-{}'
USER = '{question}' + benchmarks.BOXED
_COMMIT = 'bd2b078129347a87c10fbb64df12ed50dce59947'
# Of the files at this commit; that of training was not seen.
_SHA256 = {
  'disco_aime24': '36a2cd424d751404b8659592c3eb9e29'
  'e736d2c9f3373488d4e26abf4b521598',
  'disco_math500': '51475213a8693100bd1b1a0514014783'
  '3c6505d852642732856345f7b9f4a00d',
  'disco_minerva': '6b91e77db5d2b6ccfef24718a2aeda00'
  'e8a83a1624911f6bd3bbd02aff91641f',
  'disco_olympiad': '9e400f1d524a4cab8f32de08e8acfc3f'
  'e1a128f8b3bfae9e30c29f73c21bd8f2',
}


def _rows_of(name, file, rows):
  return benchmarks.verl_rows(
    name,
    'git:Optimization-AI/DisCO',
    _COMMIT,
    f'datasets/deepscaler/data/{file}.parquet',
    rows=rows,
    sha256=_SHA256.get(name, ''),
    licence='MIT (the repository)',
  )


def _benchmark(name, file, rows):
  return _sampled(_rows_of(f'disco_{name}', file, rows))


def _sampled(data):
  return Benchmark(data=data, samples=16, temperature=0.6, top_p=0.95)


TRAIN = _rows_of('disco_deepscaler', 'train', None)
EVALUATION = {
  'aime24': _benchmark('aime24', 'aime', 30),
  'aime25': _sampled(benchmarks.AIME25),
  'math500': _benchmark('math500', 'math', 500),
  'amc': _sampled(benchmarks.AMC83),
  'minerva': _benchmark('minerva', 'minerva', 272),
  'olympiadbench': _benchmark('olympiad', 'olympiad_bench', 675),
}
COLUMNS = (*EVALUATION, 'average')
VARIANTS = {
  '7b': (
    *settings.other_model(MODEL.format('7B')),
    'optimizer.learning_rate=1e-6',
    'rollout.slots=256',
  )
}
TABLE = {
  'model_1p5b': (0.181, 0.215, 0.758, 0.515, 0.237, 0.353, 0.376),
  'grpo_1p5b': (0.277, 0.242, 0.838, 0.647, 0.276, 0.462, 0.457),
  'grpo_er_1p5b': (0.298, 0.242, 0.839, 0.649, 0.279, 0.452, 0.460),
  'dr_grpo_1p5b': (0.252, 0.238, 0.831, 0.631, 0.268, 0.440, 0.443),
  'dapo_1p5b': (0.310, 0.252, 0.848, 0.675, 0.296, 0.456, 0.473),
  'trpa_1p5b': (0.354, 0.235, 0.835, 0.653, 0.283, 0.458, 0.470),
  'disco_ratio_1p5b': (0.381, 0.306, 0.878, 0.746, 0.319, 0.512, 0.524),
  'disco_1p5b': (0.404, 0.317, 0.876, 0.758, 0.333, 0.509, 0.533),
  'model_7b': (0.402, 0.292, 0.873, 0.688, 0.355, 0.471, 0.513),
  'grpo_7b': (0.498, 0.394, 0.916, 0.807, 0.381, 0.555, 0.592),
  'dr_grpo_7b': (0.488, 0.346, 0.910, 0.792, 0.368, 0.546, 0.575),
  'dapo_7b': (0.454, 0.335, 0.907, 0.799, 0.388, 0.535, 0.570),
  'disco_ratio_7b': (0.583, 0.421, 0.923, 0.852, 0.399, 0.585, 0.627),
  'disco_7b': (0.558, 0.410, 0.927, 0.854, 0.410, 0.592, 0.625),
}


def get_config(method: Method) -> ExperimentConfig:
  """128 prompts of 8 samples, four updates, responses of 8192 tokens."""
  task = settings.task(
    TRAIN, ChatTemplate(user=USER), extract='boxed_after_think'
  )
  return ExperimentConfig(
    iterations=1400,
    task=task,
    method=method,
    model=settings.model(MODEL.format('1.5B')),
    rollout=RolloutConfig(
      num_prompts=128,
      group_size=8,
      max_prompt_tokens=1024,
      max_response_tokens=8192,
      temperature=0.6,
      slots=512,
      overlong_prompt='skip',
    ),
    update=UpdateConfig(minibatch_prompts=32, microbatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=2e-6),
    mesh=MeshConfig(data=1, fsdp=8),
    evaluation=settings.evaluation(EVALUATION, task, every=20),
    verifier=VerifierConfig(num_workers=16, timeout_seconds=5.0),
  )


def _rows(size, variant):
  ratio = ('method.losses.DisCO.score=ratio', 'method.losses.DisCO.tau=1.0')
  return {
    f'disco_{size}': Row(method='disco', variant=variant),
    f'disco_ratio_{size}': Row(method='disco', variant=variant, set=ratio),
  }


_OTHERS = {
  name: 'the settings of this baseline were not read'
  for size, kinds in (
    ('1p5b', ('grpo', 'grpo_er', 'dr_grpo', 'dapo', 'trpa')),
    ('7b', ('grpo', 'dr_grpo', 'dapo')),
  )
  for name in [f'{kind}_{size}' for kind in kinds]
}
RECIPE = Recipe(
  title='DisCO on R1-Distill-Qwen',
  paper='arXiv 2505.12366',
  table='Qwen-1.5B and 7B distilled from R1, six benchmarks, 8k tokens',
  source=(
    'Optimization-AI/DisCO @ bd2b0781, '
    'scripts/train/run_disco_{logL,Lratio}_{1.5b,7b}_8k.sh, '
    'scripts/eval/eval_model_8k.sh'
  ),
  models=(MODEL.format('1.5B'), MODEL.format('7B')),
  data=(TRAIN,),
  config=get_config,
  rows=_rows('1p5b', '') | _rows('7b', '7b'),
  columns=COLUMNS,
  average='average',
  evaluation=EVALUATION,
  published=settings.published(TABLE, COLUMNS),
  protocol='mean of 16 samples, temperature 0.6, top_p 0.95, 8192 tokens',
  follows='paper',
  stop='1400 rollouts (unverified); training was stopped by hand',
  prompts=(
    (
      USER,
      'Optimization-AI/DisCO @ bd2b0781, deepscaler_dataset.py',
      'MIT',
    ),
  ),
  hardware='1.5B: one node of 8 x A100-80GB; 7B: several nodes',
  left_out=_OTHERS,
  transcribed=('both tables, from images of the repository',),
  unverified=(
    '1400 rollouts',
    'columns and number of rows of the training file',
  ),
  weaker=(
    'answers are graded by `math`, which accepts and refuses some forms that '
    'the released grader does not',
  ),
  traps=(
    'Loss and constraint are computed within a gathered microbatch of 4 groups '
    'in the code, over the minibatch of 32 groups here and in the paper.',
    'Responses that are cut at 8192 tokens are wrong: they have no </think>.',
    'The temperature 0.6 of training enters the log-probabilities.',
    'The README names an evaluation script that does not exist.',
  ),
  pods=('gpu:h100:1x1x8', 'tpu:v5p:2x2x2'),
)
