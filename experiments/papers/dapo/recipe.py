"""DAPO on Qwen2.5-32B: AIME 2024."""

from experiments.papers import benchmarks, settings
from experiments.papers.entropy_mechanism.recipe import TRAIN
from experiments.papers.recipe import Benchmark, Recipe, Row
from rl_jax.config import ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import ChatTemplate
from rl_jax.verification.pool import VerifierConfig

MODEL = 'Qwen/Qwen2.5-32B'
USER = benchmarks.DAPO_BEFORE + '{question}' + benchmarks.DAPO_AFTER
TEST = benchmarks.verl_rows(
  'dapo_aime24',
  'git:BytedTsinghua-SIA/DAPO',
  '33fe3176f0bb212588e84fc8ccf50dd554975144',
  'eval/aime-2024.parquet',
  prefix=benchmarks.DAPO_BEFORE,
  suffix=benchmarks.DAPO_AFTER,
  rows=960,
  unique=30,
  sha256=('12154e38a716d12db5731f9a022ae69a610c4f7d0e0dcc04e902887a686877e7'),
)
EVALUATION = {
  'aime24': Benchmark(data=TEST, samples=32, temperature=1.0, top_p=0.7)
}


def get_config(method: Method) -> ExperimentConfig:
  """512 prompts of 16 samples, 16 updates, responses of 20480 tokens."""
  task = settings.task(
    TRAIN,
    ChatTemplate(user=USER),
    extract='answer_line',
    verifier='math',
    last_characters=300,
  )
  return ExperimentConfig(
    iterations=300,
    task=task,
    method=method,
    model=settings.model(MODEL),
    rollout=RolloutConfig(
      num_prompts=512,
      group_size=16,
      max_prompt_tokens=2048,
      max_response_tokens=20480,
      max_rounds=10,
      round_prompts=1536,
      slots=512,
      overlong_prompt='skip',
    ),
    update=UpdateConfig(
      minibatch_prompts=32, microbatch_prompts=16, microbatch_rows=1
    ),
    optimizer=OptimizerConfig(
      learning_rate=1e-6, warmup_steps=10, weight_decay=0.1
    ),
    mesh=MeshConfig(data=1, fsdp=16, tensor=8),
    evaluation=settings.evaluation(EVALUATION, task, every=5),
    verifier=VerifierConfig(num_workers=16, timeout_seconds=5.0),
  )


# Rewards of -1 and 1, to which the penalty of long responses is added.
_REWARD = (
  'method.shaping=(Affine(scale=2.0, offset=-1.0), '
  'OverlongPenalty(max_tokens=20480.0, buffer_tokens=4096.0))'
)
_SMALL = (
  'method.shaping.OverlongPenalty.max_tokens=8.0',
  'method.shaping.OverlongPenalty.buffer_tokens=4.0',
)
RECIPE = Recipe(
  title='DAPO on Qwen2.5-32B',
  paper='arXiv 2503.14476',
  table='Table 1: AIME 2024',
  source=(
    'verl-project/verl-recipe, dapo/run_dapo_qwen2.5_32b.sh and '
    'run_dapo_wo_ds_qwen2.5_32b.sh; BytedTsinghua-SIA/DAPO @ 33fe3176, eval/'
  ),
  models=(MODEL,),
  data=(TRAIN,),
  config=get_config,
  rows={
    'without_dynamic_sampling': Row(
      method='dapo',
      set=(
        _REWARD,
        'method.group_filter=null',
        'rollout.round_prompts=null',
      ),
      tiny=_SMALL,
    ),
    'dapo': Row(method='dapo', set=(_REWARD,), tiny=_SMALL),
  },
  columns=('aime24',),
  evaluation=EVALUATION,
  published={
    ('naive_grpo', 'aime24'): 30,
    ('overlong_filtering', 'aime24'): 36,
    ('clip_higher', 'aime24'): 38,
    ('soft_overlong_punishment', 'aime24'): 41,
    ('without_dynamic_sampling', 'aime24'): 42,
    ('dapo', 'aime24'): 50,
    ('r1_zero_qwen_32b', 'aime24'): 47,
  },
  protocol='mean of 32 samples, temperature 1.0, top_p 0.7, 20480 tokens',
  follows='released code',
  stop='300 rollouts, which no file states; an epoch count does not end it',
  prompts=(
    (
      USER,
      'BytedTsinghua-SIA/DAPO @ 33fe3176, eval/aime-2024.parquet',
      'not stated',
    ),
  ),
  hardware='16 nodes of 8 GPUs; type not stated',
  left_out={
    name: 'the released scripts are of the last two rows only'
    for name in (
      *('naive_grpo', 'overlong_filtering', 'clip_higher'),
      'soft_overlong_punishment',
    )
  },
  unverified=('300 rollouts', 'the name of the model on the hub'),
  weaker=(
    'answers are compared as numbers, not as texts without units and LaTeX',
  ),
  traps=(
    'The data set has each of about 17,000 problems about a hundred times.',
    "The table's row before dynamic sampling is 42; verl's run of it reached "
    '50, and 52 with it.',
    'The penalty of long responses enters the reward; the filter of groups '
    'reads the accuracy.',
    'Warm-up is 10 optimizer steps in the script, 20 rollouts in the paper.',
    'The released script passes a dual clip of 10, which these rows lack.',
  ),
  chat=benchmarks.chatml(USER),
  pods=('gpu:h100:1x16x8', 'tpu:v5p:4x4x8'),
)
