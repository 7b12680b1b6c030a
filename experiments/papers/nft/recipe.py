"""NFT and DAPO on Qwen2.5-Math-7B and Qwen2.5-32B: six benchmarks."""

from experiments.papers import settings
from experiments.papers.recipe import Benchmark, DataSource, Recipe, Row
from rl_jax.config import ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import ChatTemplate
from rl_jax.verification.pool import VerifierConfig

MODEL_7B, MODEL_32B = 'Qwen/Qwen2.5-Math-7B', 'Qwen/Qwen2.5-32B'
USER = '{question}'


def _rows_of(name, file):
  return DataSource(
    name=name,
    repository='hf:ChenDRAG/VeRL_math_validation',
    revision='main',
    path=f'{file}.parquet',
    columns=('data_source', 'prompt', 'reward_model.ground_truth'),
    question='{prompt}',
    answer='{reward_model.ground_truth}',
  )


TRAIN = _rows_of('nft_dapo_math_17k', 'dapo-math-17k_10boxed')


def _benchmark(name, file, about, samples, **changes):
  return Benchmark(
    data=_rows_of(name, file),
    about=about,
    samples=samples,
    temperature=1.0,
    top_p=0.7,
    changes=changes,
  )


# By math-verify; others are the text of the box in the last 100 characters.
_MATH = {'verifier': 'math', 'last_characters': None}
EVALUATION = {
  'aime24': _benchmark('nft_aime24', 'aime-2024-boxed_w_answer', 30, 32),
  'math500': _benchmark('nft_math500', 'math500_boxed', 500, 1, **_MATH),
  'aime25': _benchmark('nft_aime25', 'aime2025_32_dapo_boxed_w_answer', 30, 32),
  'amc23': _benchmark('nft_amc23', 'amc2023_32_dapo_boxed_w_answer', 40, 32),
  'olympiadbench': _benchmark('nft_olympiad', 'olympiadbench', 675, 1, **_MATH),
  'minerva': _benchmark('nft_minerva', 'minerva_math', 272, 1, **_MATH),
}
COLUMNS = (*EVALUATION, 'average')
# What makes it fit on its pods; none of it changes a number.
_OF_32B = (
  *('mesh.fsdp=16', 'mesh.tensor=8', 'rollout.slots=512'),
  *('update.microbatch_prompts=16', 'update.microbatch_rows=1'),
)
_PODS_32B = ('gpu:h100:1x16x8', 'tpu:v5p:4x4x8')
VARIANTS = {
  '32b': (
    *settings.other_model(MODEL_32B),
    'rollout.max_prompt_tokens=2048',
    'rollout.max_response_tokens=14336',
    *_OF_32B,
  )
}
TABLE = {
  'model_7b': (13.3, 69.0, 5.5, 45.8, 34.7, 21.3, 31.6),
  'dpo_7b': (29.8, 79.8, 13.8, 83.2, 48.0, 39.0, 48.9),
  'grpo_7b': (30.2, 80.4, 17.1, 79.5, 51.8, 38.2, 49.5),
  'dr_grpo_7b': (31.8, 83.4, 15.7, 80.2, 49.6, 38.2, 49.8),
  'dapo_7b': (33.1, 81.6, 18.7, 85.0, 49.9, 39.3, 51.2),
  'rft_7b': (33.7, 79.8, 13.4, 79.7, 44.3, 38.6, 48.3),
  'nft_7b': (32.0, 83.2, 18.3, 88.5, 47.3, 40.8, 51.7),
  'model_32b': (4.1, 68.6, 1.0, 45.0, 31.1, 27.9, 29.6),
  'dapo_32b': (44.1, 89.2, 33.4, 90.9, 54.1, 47.5, 59.9),
  'rft_32b': (29.9, 86.2, 19.1, 92.4, 45.3, 44.1, 52.8),
  'nft_32b': (37.8, 88.4, 31.5, 93.8, 55.0, 48.9, 59.2),
}


def get_config(method: Method) -> ExperimentConfig:
  """512 prompts of 16 samples, 16 updates, responses of 3584 tokens."""
  task = settings.task(
    TRAIN,
    ChatTemplate(user=USER),
    extract='boxed',
    verifier='text',
    last_characters=100,
  )
  return ExperimentConfig(
    iterations=300,
    task=task,
    method=method,
    model=settings.model(MODEL_7B),
    rollout=RolloutConfig(
      num_prompts=512,
      round_prompts=1536,
      group_size=16,
      max_prompt_tokens=512,
      max_response_tokens=3584,
      max_rounds=10,
      slots=2048,
      overlong_prompt='skip',
    ),
    update=UpdateConfig(minibatch_prompts=32, microbatch_prompts=32),
    optimizer=OptimizerConfig(
      learning_rate=1e-6, warmup_steps=10, weight_decay=0.1
    ),
    mesh=MeshConfig(data=1, fsdp=32),
    evaluation=settings.evaluation(EVALUATION, task, every=2),
    verifier=VerifierConfig(num_workers=16, timeout_seconds=5.0),
  )


_SMALL = ('rollout.round_prompts=4',)


def _nft(variant, negative_weight=1.0):
  return Row(
    method='nft',
    variant=variant,
    set=(f'method.losses.NFT.negative_weight={negative_weight}',)
    * (negative_weight != 1.0),
    tiny=_SMALL,
    pods=_PODS_32B if variant else (),
  )


RECIPE = Recipe(
  title='NFT on Qwen2.5-Math-7B and Qwen2.5-32B',
  paper='arXiv 2505.18116',
  table='main table: six benchmarks',
  source=(
    'NVlabs/NFT, train_7B.sh, train_32B.sh, eval_local_7B.sh, verifier.py and '
    'assets/main_table.png'
  ),
  models=(MODEL_7B, MODEL_32B),
  data=(TRAIN,),
  config=get_config,
  rows={
    'nft_7b': _nft(''),
    'rft_7b': _nft('', 0.0),
    'dapo_7b': Row(method='dapo', set=('method.shaping=()',), tiny=_SMALL),
    'nft_32b': _nft('32b'),
    'rft_32b': _nft('32b', 0.0),
    'dapo_32b': Row(
      method='dapo',
      variant='32b',
      set=(
        'method.shaping=(Affine(scale=2.0, offset=-1.0), '
        'OverlongPenalty(max_tokens=14336.0, buffer_tokens=4096.0))',
      ),
      tiny=(
        *_SMALL,
        'method.shaping.OverlongPenalty.max_tokens=8.0',
        'method.shaping.OverlongPenalty.buffer_tokens=4.0',
      ),
      pods=_PODS_32B,
    ),
  },
  columns=COLUMNS,
  average='average',
  evaluation=EVALUATION,
  published=settings.published(TABLE, COLUMNS),
  protocol=(
    'mean of 32 samples on AIME 2024, AIME 2025 and AMC 23, one sample on the '
    'others; temperature 1.0, top_p 0.7'
  ),
  follows='released code',
  stop='300 rollouts, which no file states: training was stopped by hand',
  prompts=((USER, "the rows' own text", 'not stated'),),
  hardware='4 nodes of 8 H100 (7B), 16 nodes of 8 H100 (32B)',
  left_out={
    name: 'its settings were not read'
    for name in ('dpo_7b', 'grpo_7b', 'dr_grpo_7b')
  },
  transcribed=('the table, from a figure',),
  unverified=(
    'the text of the prompts, and whether rows have a system message',
    'numbers of rows, for which plans take those of other files of these sets',
    'the paths of the files in their repository',
    '300 rollouts',
  ),
  weaker=(
    'responses of the evaluation have as many tokens as in training; the '
    'released script gives 7168, more than the 4096 positions of '
    'Qwen2.5-Math-7B allow',
    "the 32B has its own system message; the released script gives it the 7B's",
    'the gradient is that of the mean over rows, not of the sum',
    'each of about 17,000 problems is there once, not ten times',
  ),
  traps=(
    'The paper derives ratios of sequences; the code uses those of tokens.',
    'eval_local_7B.sh samples at temperature 1.0 and top_p 0.7, the validation '
    'of the training scripts at 0.6 and 0.7.',
    'eval_local_7B.sh writes to a folder that is named NFT_32B.',
    'RFT is NFT with negative weight 0, DAPO the same script with -1.',
    'A comment of the 32B script suggests a negative weight of 0.5; the script '
    'has 1.',
  ),
  pods=('gpu:h100:1x4x8', 'tpu:v5p:2x4x4'),
)
