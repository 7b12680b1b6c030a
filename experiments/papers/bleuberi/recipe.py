"""BLEUBERI: GRPO with BLEU as the reward, Qwen2.5-7B and 3B."""

from experiments.papers import settings
from experiments.papers.recipe import ByHand, DataSource, Recipe, Row
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import ChatTemplate, RewardFunctions
from rl_jax.verification.pool import VerifierConfig

MODEL = 'Qwen/Qwen2.5-{}'
USER = '{question}'
TRAIN = DataSource(
  name='bleuberi_hard_5000',
  repository='hf:yapeichang/BLEUBERI-Tulu3-50k',
  revision='main',
  path='data/train-00000-of-00001.parquet',
  columns=('prompt', 'references.gold.0'),
  question='{prompt}',
  answer='{references.gold.0}',
)
VARIANTS = {'3b': settings.other_model(MODEL.format('3B'))}
COLUMNS = (
  *('mt_bench', 'arena_hard_v1', 'arena_hard_v2', 'wildbench', 'average'),
)
TABLE = {
  'model_7b': (63.5, 16.2, 5.6, 51.8, 34.3),
  'sft_7b': (67.3, 22.1, 9.9, 60.5, 40.0),
  'grpo_rm_7b': (76.8, 29.8, 12.2, 64.9, 45.9),
  'bleuberi_7b': (70.8, 29.3, 12.8, 65.4, 44.6),
  'model_3b': (61.0, 7.0, 3.2, 49.1, 30.1),
  'grpo_rm_3b': (67.8, 12.8, 5.1, 59.2, 36.2),
  'bleuberi_3b': (64.5, 11.0, 3.8, 56.1, 33.8),
}


def get_config(method: Method) -> ExperimentConfig:
  """Four prompts of eight samples: one epoch of 5000 is 1250 iterations."""
  task = RewardFunctions(
    task=settings.task(
      TRAIN, ChatTemplate(user=USER), extract='whole', verifier='text'
    ),
    functions={'rl_jax.tasks.bleu_reward:bleuberi': 1.0},
  )
  return ExperimentConfig(
    iterations=1250,
    seed=42,
    task=task,
    method=method,
    model=settings.model(MODEL.format('7B')),
    rollout=RolloutConfig(
      num_prompts=4,
      group_size=8,
      max_prompt_tokens=512,
      max_response_tokens=512,
      temperature=0.9,
      overlong_prompt='skip',
    ),
    update=UpdateConfig(),
    optimizer=OptimizerConfig(
      learning_rate=1e-6, warmup_steps=63, clip_norm=0.2
    ),
    mesh=MeshConfig(data=1, fsdp=4),
    evaluation=EvaluationConfig(every=0),
    verifier=VerifierConfig(num_workers=4, timeout_seconds=5.0),
  )


_GRPO = ('method.losses.KLPenalty.coef=0.04', 'method.aggregation=TokenMean()')
_TEXTS = (
  ('Name three colours.', 'Red, green and blue are three colours.'),
  ('Say hello.', 'Hello, it is good to see you.'),
  ('What does a baker make?', 'A baker makes bread and cakes every morning.'),
  ('Where do fish live?', 'Fish live in rivers, lakes and the sea.'),
)
RECIPE = Recipe(
  title='BLEUBERI on Qwen2.5',
  paper='arXiv 2505.11080',
  table='Table 1',
  source=(
    'lilakk/BLEUBERI @ e0d15639, training/grpo.sh, training/utils.py, '
    'training/create_training_data.py'
  ),
  models=(MODEL.format('7B'), MODEL.format('3B')),
  data=(TRAIN,),
  config=get_config,
  rows={
    'bleuberi_7b': Row(method='grpo', set=_GRPO),
    'bleuberi_3b': Row(method='grpo', variant='3b', set=_GRPO),
  },
  columns=COLUMNS,
  evaluation={},
  missing={
    column: 'a commercial model judges the responses' for column in COLUMNS
  },
  published=settings.published(TABLE, COLUMNS),
  protocol='outside judges: FastChat, ArenaHard 1 and 2, WildBench',
  follows='released code',
  stop='one epoch of 5000 prompts, 1250 rollouts',
  prompts=((USER, "the rows' prompts, lilakk/BLEUBERI", 'not stated'),),
  hardware='one GPU by the arithmetic of the script; type not stated',
  left_out={
    'sft_7b': 'supervised training is another command of this package',
    'grpo_rm_7b': 'its prompts are others, those of the least reward',
    'grpo_rm_3b': 'its prompts are others, those of the least reward',
  },
  transcribed=('the table, from a figure',),
  unverified=(
    'the path, the columns and the form of the references in the data set',
    'KL 0.04 and the mean over tokens, defaults of TRL 0.17',
    'Llama-3.1-8B, which starts from supervised training, is not a row',
  ),
  weaker=(
    'nothing of the table can be measured here',
    'the 5000 prompts with the least BLEU of the model are to be selected '
    'first; the file of the recipe has all 50,000',
    'one reference, as in the main rows; the ablations have five',
  ),
  traps=(
    'Names of runs say random, which is the order; the selection is hard.',
    'BLEU is that of the library evaluate with smoothing, not sacrebleu.',
  ),
  pods=('gpu:h100:1x1x4', 'tpu:v5p:2x2x1'),
  by_hand={
    'bleuberi_hard_5000': tuple(
      ByHand(
        row={'prompt': prompt, 'references': {'gold': [text]}},
        right=text,
        wrong=text + ' Or not.',
      )
      for prompt, text in _TEXTS
    )
  },
)
