"""Dr. GRPO on Qwen2.5-Math: the table of Oat-Zero."""

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

MODEL = 'Qwen/Qwen2.5-Math-{}'
SYSTEM = (
  'Please reason step by step, and put your final answer within \\boxed{}.'
)
_COMMIT = 'dfca49dd460ee7cc8e4a5a162c876a7fd6993b87'
# Of the files at this commit; those of training were not seen.
_SHA256 = {
  'oat_aime': '861514ca0262d6c03d36d463ee33fe44'
  '65b0b85c0593f5df67bc75a717f50e5a',
  'oat_amc': '5e16d28683b95782686413eadd12560d051b2d4ac8aef456b500891ccabd5233',
  'oat_math': 'd383d13c807e2904d0db6f8d98496a05'
  '74c0a1d51f40331b920c849cf226ef5a',
  'oat_minerva': '23d05849fd365b9dae2ce5f6c4b6af3b'
  'aecbbd0a88623abec3f0692d346bae2a',
  'oat_olympiad': '1b3e77da96c15b3f51fdcda4c86d6cb4'
  'dc698f223eea6f80c06a44af32e85455',
}


def _oat(name, folder, rows, **fields):
  return DataSource(
    name=name,
    repository='git:sail-sg/understand-r1-zero',
    revision=_COMMIT,
    path=f'datasets/{folder}/data-00000-of-00001.arrow',
    columns=('problem', 'answer'),
    rows=rows,
    sha256=_SHA256.get(name, ''),
    question='{problem}',
    licence='MIT (the repository)',
    **fields,
  )


TRAIN = _oat('oat_math_12k', 'train/math_12k/train', None)
HARDER = _oat('oat_math_lvl3to5_8k', 'train/math_lvl3to5_8k/train', 8523)
EVALUATION = {
  'aime24': Benchmark(data=_oat('oat_aime', 'evaluation_suite/aime', 30)),
  'amc': Benchmark(data=_oat('oat_amc', 'evaluation_suite/amc', 83)),
  'math500': Benchmark(data=_oat('oat_math', 'evaluation_suite/math', 500)),
  'minerva': Benchmark(
    data=_oat('oat_minerva', 'evaluation_suite/minerva', 272)
  ),
  'olympiadbench': Benchmark(
    data=_oat('oat_olympiad', 'evaluation_suite/olympiad_bench', 675)
  ),
}
COLUMNS = (*EVALUATION, 'average')
VARIANTS = {
  '7b': (
    *settings.other_model(MODEL.format('7B')),
    f"task.sources={{'train': '{HARDER.file}'}}",
    'iterations=1331',
  )
}
TABLE = {
  'model_1p5b': (20.0, 32.5, 33.0, 12.5, 22.8, 24.2),
  'model_1p5b_no_template': (16.7, 43.4, 61.8, 15.1, 28.4, 33.1),
  'dr_grpo_1p5b': (20.0, 53.0, 74.2, 25.7, 37.6, 42.1),
  'model_7b': (16.7, 38.6, 50.6, 9.9, 16.6, 26.5),
  'model_7b_no_template': (0.2, 45.8, 69.0, 21.3, 34.7, 38.2),
  'dr_grpo_7b': (43.3, 62.7, 80.0, 30.1, 41.0, 51.4),
  'dr_grpo_3b': (6.7, 18.1, 50.0, 14.3, 14.7, 20.7),
}


def get_config(method: Method) -> ExperimentConfig:
  """128 prompts of 8 samples, eight updates, responses of 3000 tokens."""
  task = settings.task(TRAIN, ChatTemplate(system=SYSTEM))
  return ExperimentConfig(
    iterations=1875,
    task=task,
    method=method,
    model=settings.model(MODEL.format('1.5B')),
    rollout=RolloutConfig(
      num_prompts=128,
      group_size=8,
      max_prompt_tokens=1024,
      max_response_tokens=3000,
      overlong_prompt='skip',
    ),
    update=UpdateConfig(
      minibatch_rows=128, microbatch_rows=64, microbatch_prompts=8
    ),
    optimizer=OptimizerConfig(learning_rate=1e-6, b2=0.95),
    mesh=MeshConfig(data=1, fsdp=8),
    evaluation=settings.evaluation(EVALUATION, task, every=16),
    verifier=VerifierConfig(num_workers=16, timeout_seconds=5.0),
  )


_UNFINISHED = ('method.shaping=NonStop(penalty=0.0)',)
_LENGTH = ('method.aggregation.length=3000.0',)
RECIPE = Recipe(
  title='Dr. GRPO: Oat-Zero',
  paper='arXiv 2503.20783',
  table='Table 4: five benchmarks, greedy',
  source=(
    'sail-sg/understand-r1-zero @ dfca49dd, train_zero_math.py, '
    'examples/qwen2.5-math-{1.5b,7b}.sh, evaluate_model.py'
  ),
  models=(MODEL.format('1.5B'), MODEL.format('7B')),
  data=(TRAIN, HARDER),
  config=get_config,
  rows={
    'dr_grpo_1p5b': Row(method='dr_grpo', add=_UNFINISHED, set=_LENGTH),
    'grpo_1p5b': Row(method='grpo@no_kl', add=_UNFINISHED),
    'dr_grpo_7b': Row(
      method='dr_grpo', variant='7b', add=_UNFINISHED, set=_LENGTH
    ),
    'grpo_7b': Row(method='grpo@no_kl', variant='7b', add=_UNFINISHED),
  },
  columns=COLUMNS,
  average='average',
  evaluation=EVALUATION,
  published=settings.published(TABLE, COLUMNS),
  protocol='greedy, 3000 tokens, 4096 with the prompt; mean of five benchmarks',
  follows='released code',
  stop='20 epochs, 1875 rollouts at most; the authors took the best step',
  prompts=(
    (
      SYSTEM,
      'sail-sg/understand-r1-zero @ dfca49dd, template qwen_math',
      'MIT',
    ),
  ),
  hardware='8 x A100; scripts tested on 8 x A100-40G',
  hours='27 (7B)',
  left_out={
    'dr_grpo_3b': 'it starts from lkevinzc/Llama-3.2-3B-NuminaQA, whose sizes '
    'and template were not read'
  },
  transcribed=('the table, from an image of the repository',),
  unverified=(
    'the number of rows of math_12k, said to be 12,000',
    'that 20 epochs of the 7B are 1331 rollouts: 8523 rows of a file whose '
    'count comes from another paper',
  ),
  weaker=(
    'answers are graded by `math`: it refuses what is not evaluated, which the '
    'released grader accepts',
  ),
  traps=(
    'AIME 2024 has 30 problems: 43.3 is 13 of them. The released weights give '
    '25.7 as the mean of 32 samples at temperature 1, and 26.7 to 30 greedily '
    'with a newer sampler.',
    'The best step was chosen by the score on the test sets.',
    "The README's example trains 1.5B with the template r1; the table's model "
    'has the template qwen_math.',
    'Newer versions of the framework truncate importance weights by default.',
    'AMC has 83 problems here and 40 elsewhere; its answers are numbers as '
    '142.0.',
  ),
  chat=benchmarks.chatml('{question}', SYSTEM),
  pods=('gpu:h100:1x1x8', 'tpu:v5p:2x2x2'),
)
