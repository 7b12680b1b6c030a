"""GSPO and EMPO on Qwen2.5-Math: the best documented runs of GSPO."""

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

MODEL = 'Qwen/Qwen2.5-Math-{}'
USER = '{question}' + benchmarks.BOXED
_COMMIT = 'c5eccd400ba7a7a1685dedf25eab03780aad855f'
_SHA256 = {
  'empo_nm_20k': '3a064fd73cfd410dae1bb3258b8f8567'
  'da5c889714d6999e6a4f1c183403798e',
  'empo_math500': '267b17db283f8b4cdad632f1a6eb45f7'
  '6d2d0430ba60c49e29edb120b8816fa9',
  'empo_olympiad': '1cece3e80696ee8b996c36f3d5728cc4'
  '83c78f0c197a4d614a607854d717c5d7',
  'empo_amc23': 'c1bd65b00161356f7fdb31a55da493c5'
  '000c0f9099c80b71ca746c159e0b0d82',
  'empo_aime24': 'b788e0db885d4b7eedd239324a3d6f4d'
  'd95ba21e366af33d442ca19f071125b6',
}


# The rows of AIME 2024 have another instruction than all others.
_AIME = " Let's think step by step, and put the final answer within \\boxed{}."


def _rows_of(name, file, rows, **fields):
  return benchmarks.verl_rows(
    name,
    'git:QingyangZhang/EMPO',
    _COMMIT,
    f'math_data/{file}.parquet',
    rows=rows,
    sha256=_SHA256[name],
    **fields,
  )


TRAIN = _rows_of('empo_nm_20k', 'NM_20K_1010', 20000, unique=19880)
EVALUATION = {
  'math500': Benchmark(data=_rows_of('empo_math500', 'math500', 500)),
  'minerva': Benchmark(data=benchmarks.MINERVA),
  'olympiadbench': Benchmark(
    data=_rows_of('empo_olympiad', 'olympiadbench', 675)
  ),
  'aime24': Benchmark(
    data=_rows_of('empo_aime24', 'aime24_0726', 30, suffix=_AIME),
    user='{question}' + _AIME,
  ),
  'amc23': Benchmark(data=_rows_of('empo_amc23', 'amc23_1010', 40)),
}
COLUMNS = (*EVALUATION, 'average')
VARIANTS = {'7b': settings.other_model(MODEL.format('7B'))}
TABLE = {
  'model_1p5b': (66.4, 19.1, 33.8, 3.3, 42.5, 33.0),
  'gspo_1p5b': (78.0, 37.1, 39.1, 10.0, 50.0, 42.8),
  'empo_1p5b': (77.6, 36.0, 39.5, 10.0, 50.0, 42.6),
  'model_7b': (70.2, 12.5, 30.8, 10.0, 45.0, 33.7),
  'gspo_7b': (82.4, 45.2, 47.6, 23.3, 60.0, 51.7),
  'empo_7b': (81.4, 42.3, 46.1, 23.3, 65.0, 51.6),
}


def get_config(method: Method) -> ExperimentConfig:
  """256 prompts of 16 samples, eight updates, responses of 3072 tokens."""
  task = settings.task(TRAIN, ChatTemplate(user=USER), bad_rows='skip')
  return ExperimentConfig(
    iterations=300,
    task=task,
    method=method,
    model=settings.model(MODEL.format('1.5B')),
    rollout=RolloutConfig(
      num_prompts=256,
      group_size=16,
      max_prompt_tokens=1024,
      max_response_tokens=3072,
      slots=1024,
      overlong_prompt='skip',
    ),
    update=UpdateConfig(minibatch_prompts=32, microbatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=5e-7),
    mesh=MeshConfig(data=1, fsdp=8),
    evaluation=settings.evaluation(EVALUATION, task, every=20),
    verifier=VerifierConfig(num_workers=16, timeout_seconds=5.0),
  )


def _row(variant, without_labels):
  return Row(
    method='gspo',
    variant=variant,
    add=('method.shaping=ClusterFrequency()',) * without_labels,
    set=('method.aggregation=TokenMean()',)
    + ('task.clusters=true',) * without_labels,
  )


RECIPE = Recipe(
  title='GSPO and EMPO on Qwen2.5-Math',
  paper='arXiv 2504.05812',
  table='README: five benchmarks, greedy',
  source=(
    'QingyangZhang/EMPO @ c5eccd4, '
    'verl-empo/recipe/empo/scripts/run_empo_qwen2.5_math_{1.5b,7b}.sh'
  ),
  models=(MODEL.format('1.5B'), MODEL.format('7B')),
  data=(TRAIN,),
  config=get_config,
  rows={
    'gspo_1p5b': _row('', False),
    'empo_1p5b': _row('', True),
    'gspo_7b': _row('7b', False),
    'empo_7b': _row('7b', True),
  },
  columns=COLUMNS,
  average='average',
  evaluation=EVALUATION,
  published=settings.published(TABLE, COLUMNS),
  protocol='greedy, one response',
  follows='released code',
  stop='300 rollouts; the 1.5B of the table is rollout 192',
  prompts=(
    (USER, 'QingyangZhang/EMPO @ c5eccd4, rows of math_data', 'not stated'),
  ),
  hardware='one node of 8 GPUs; type not stated',
  unverified=('the limit on tokens of the evaluation',),
  weaker=(
    'the 120 questions that occur twice among 20,000 are trained on once',
    '5 of 19,880 problems to train on have right answers that `math` cannot '
    'read, and are left out',
    'clusters are of equal values of answers, not those of the released '
    'code, which was not compared',
  ),
  traps=(
    'The numbers of the README differ from those of the preprint.',
    'The method empo of this package follows an older recipe of the authors '
    '(PPO clip, 7 samples); these rows are GSPO with frequencies as rewards.',
    'In the file math_data/minerva_math.parquet 68 of 272 right answers end at '
    'their first closing brace, so that no response is right; this recipe '
    'reads the whole answers from another repository.',
    'The links of the two released models are swapped in the README.',
    'The script of the 7B calls its experiment GRPO.',
  ),
  chat=benchmarks.chatml(USER),
  pods=('gpu:h100:1x1x8', 'tpu:v5p:2x2x2'),
)
