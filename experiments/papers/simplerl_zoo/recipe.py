"""SimpleRL-Zoo: GRPO from base models of Qwen2.5, 0.5B to 32B."""

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

SYSTEM = 'You are a helpful assistant.'
PROMPT = (
  '{question}\nPlease reason step by step, and put your final answer within '
  '\\boxed{}.'
)
TRAIN = DataSource(
  name='simplerl_level3to5',
  repository='hf:hkust-nlp/SimpleRL-Zoo-Data',
  revision='main',
  path='simplelr_qwen_level3to5/train.parquet',
  columns=('extra_info.question', 'reward_model.ground_truth'),
  question='{extra_info.question}',
  answer='{reward_model.ground_truth}',
)


def _sampled(data, samples=1):
  return Benchmark(
    data=data, samples=samples, temperature=1.0, top_p=0.95, max_tokens=16000
  )


EVALUATION = {
  'gsm8k': _sampled(benchmarks.GSM8K),
  'math500': _sampled(benchmarks.MATH500),
  'minerva': _sampled(benchmarks.MINERVA),
  'olympiadbench': _sampled(benchmarks.OLYMPIAD),
  'aime24': _sampled(benchmarks.AIME24),
  'aime24_avg32': _sampled(benchmarks.AIME24, 32),
  'amc23': _sampled(benchmarks.AMC23),
}
COLUMNS = (*EVALUATION, 'average')
AVERAGED = tuple(name for name in EVALUATION if name != 'aime24_avg32')
MODELS = {
  '1p5b': 'Qwen/Qwen2.5-1.5B',
  '7b': 'Qwen/Qwen2.5-7B',
  'math_7b': 'Qwen/Qwen2.5-Math-7B',
  '14b': 'Qwen/Qwen2.5-14B',
  '32b': 'Qwen/Qwen2.5-32B',
}
# What makes them fit on the pods; none of it changes a number.
_OF_7B = ('mesh.fsdp=16', 'rollout.slots=256', 'update.microbatch_prompts=16')
_PLACED = {
  '7b': _OF_7B,
  'math_7b': _OF_7B,
  '14b': (
    *('mesh.fsdp=4', 'mesh.tensor=4'),
    *('rollout.slots=128', 'update.microbatch_prompts=4'),
  ),
  '32b': (*_OF_7B, 'mesh.tensor=4', 'update.microbatch_rows=1'),
}
_SMALL = ('gpu:h100:1x1x8', 'tpu:v5p:2x2x2')
_PODS = {
  '': _SMALL,
  '1p5b': _SMALL,
  '32b': ('gpu:h100:1x8x8', 'tpu:v5p:4x4x4'),
}
VARIANTS = {
  size: (*settings.other_model(name), *_PLACED.get(size, ()))
  for size, name in MODELS.items()
}
TABLE = {
  'model_0p5b': (36.7, 15.8, 4.8, 2.8, 0.0, 0.3, 12.5, 12.1),
  'grpo_0p5b': (49.5, 34.4, 10.3, 8.9, 0.0, 0.7, 22.5, 20.9),
  'model_1p5b': (55.7, 29.6, 6.6, 6.5, 0.0, 0.1, 12.5, 18.5),
  'grpo_1p5b': (74.4, 59.0, 20.2, 21.0, 6.7, 4.2, 35.0, 36.1),
  'model_7b': (88.2, 64.6, 25.7, 30.1, 3.3, 0.3, 30.0, 40.3),
  'grpo_7b': (91.7, 78.2, 38.6, 40.4, 20.0, 15.6, 62.5, 55.2),
  'model_math_7b': (65.5, 63.6, 12.5, 25.8, 13.3, 8.6, 42.5, 37.2),
  'grpo_math_7b': (90.2, 80.2, 37.5, 39.0, 40.0, 24.0, 70.0, 59.5),
}


def get_config(method: Method) -> ExperimentConfig:
  """1024 prompts of 8 samples, four updates, responses of 8192 tokens."""
  task = settings.task(
    TRAIN,
    ChatTemplate(system=SYSTEM, user=PROMPT),
    extract='boxed_or_last_number',
  )
  return ExperimentConfig(
    iterations=100,
    task=task,
    method=method,
    model=settings.model('Qwen/Qwen2.5-0.5B'),
    rollout=RolloutConfig(
      num_prompts=1024,
      group_size=8,
      max_prompt_tokens=1024,
      max_response_tokens=8192,
      slots=512,
      overlong_prompt='skip',
    ),
    update=UpdateConfig(minibatch_prompts=256, microbatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=5e-7),
    mesh=MeshConfig(data=1, fsdp=8),
    evaluation=settings.evaluation(
      EVALUATION, task, every=10, averaged=AVERAGED
    ),
    verifier=VerifierConfig(num_workers=16, timeout_seconds=10.0),
  )


def _grpo(variant='', coef=0.0001):
  return Row(
    method='grpo',
    variant=variant,
    add=('method.losses=EntropyBonus(coef=0.001)',),
    set=(
      f'method.losses.KLPenalty.coef={coef}',
      'method.aggregation=TokenMean()',
    ),
    pods=_PODS.get(variant, ()),
  )


RECIPE = Recipe(
  title='SimpleRL-Zoo',
  paper='arXiv 2503.18892',
  table='README: base models of Qwen2.5 before and after',
  source=(
    'hkust-nlp/simpleRL-reason @ cf1c7858, train_grpo_math_tune_ray.sh, '
    'eval_math_nodes.sh, README.md'
  ),
  models=('Qwen/Qwen2.5-0.5B', *MODELS.values()),
  data=(TRAIN,),
  config=get_config,
  rows={
    'grpo_0p5b': _grpo(),
    **{f'grpo_{x}': _grpo(x) for x in ('1p5b', '7b', 'math_7b', '14b')},
    'grpo_32b': _grpo('32b', 0.001),
    'lite_ppo_7b': Row(
      method='lite_ppo',
      variant='7b',
      note='another paper, whose runs have no released configuration',
    ),
  },
  columns=COLUMNS,
  average='average',
  averaged=AVERAGED,
  evaluation=EVALUATION,
  published=settings.published(TABLE, COLUMNS)
  | {
    ('grpo_14b', 'average'): 56.8,
    ('grpo_32b', 'average'): 61.9,
    ('model_llama3p1_8b', 'average'): 10.6,
    ('grpo_llama3p1_8b', 'average'): 22.0,
    ('model_mistral_7b', 'average'): 5.3,
    ('grpo_mistral_7b', 'average'): 18.6,
  },
  protocol=(
    'trained models: temperature 1.0, top_p 0.95, one sample; base models: '
    'greedy; AIME 2024 also as the mean of 32 samples'
  ),
  follows='released code',
  stop='100 rollouts, as reported for 7B and 14B',
  prompts=(
    (
      f'{SYSTEM} / {PROMPT}',
      'hkust-nlp/simpleRL-reason @ cf1c7858, simplelr_math_eval/utils.py, '
      'qwen-boxed',
      'MIT',
    ),
  ),
  hardware=(
    '0.5B: one H100 or A100-80G; 7B and 14B: 2 x 8 H100-80G; 32B: 8 x 8 '
    'H100-80G'
  ),
  hours='15 (7B and 14B, about 100 rollouts); 36 (32B)',
  left_out={
    'grpo_llama3p1_8b': 'it has another prompt and easier data, not read',
    'grpo_mistral_7b': 'it has another prompt and easier data, not read',
  },
  unverified=(
    'the columns of the training file',
    'the licence of the training file',
    'that all sizes of Qwen2.5 have the prompt qwen-boxed and the hard data',
    'the mean over all tokens in the loss',
  ),
  weaker=(
    'the authors train 0.5B on one GPU; here the prompts of a rollout are read '
    'at once, which takes more than 80 GB',
    'answers are graded by `math`, which accepts and refuses some forms that '
    'the released grader does not',
  ),
  traps=(
    'AMC 2023 has 40 problems here and 83 elsewhere.',
    'The average contains AIME 2024 by one sample, not the mean of 32.',
    'Base and trained models are decoded differently.',
    'The entropy bonus of 0.001 is on.',
  ),
  chat=benchmarks.chatml(PROMPT, SYSTEM),
  pods=('gpu:h100:1x2x8', 'tpu:v5p:2x2x4'),
)
