"""verl's baselines on GSM8K: PPO, and GRPO with adapters at six sizes."""

import dataclasses

from experiments.papers import benchmarks, settings
from experiments.papers.recipe import Benchmark, Recipe, Row
from rl_jax.config import ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import ChatTemplate
from rl_jax.verification.pool import VerifierConfig

MODEL = 'Qwen/Qwen2.5-{}-Instruct'
SIZES = ('1.5B', '3B', '7B', '14B', '32B')
PROMPT = (
  "{question} Let's think step by step and output the final answer after "
  '"####".'
)
_COLUMNS = (
  *('data_source', 'prompt', 'reward_model.ground_truth'),
  'extra_info.question',
)


def _rows_of(name, file, rows, digest):
  return benchmarks.DataSource(
    name=name,
    repository='git:eric-haibin-lin/verl-data',
    revision='21b4c31fc709b5ce42e2eb87ae0db98bd70f153c',
    path=f'gsm8k/{file}.parquet',
    columns=_COLUMNS,
    rows=rows,
    unique=rows,
    sha256=digest,
    question='{extra_info.question}',
    answer='{reward_model.ground_truth}',
    licence='MIT (openai/gsm8k)',
  )


_TRAIN = '967a8ce7e9b5ed375029f23ece19bcb52c96223a09c4b4cbc4283280be76abee'
_TEST = '573f36f82932cba89e7f7a427a40bdffc786eafefcbd6372c41223a3833b6d52'
TRAIN = _rows_of('verl_gsm8k_train', 'train', 7473, _TRAIN)
TEST = _rows_of('verl_gsm8k_test', 'test', 1319, _TEST)
EVALUATION = {'gsm8k': Benchmark(data=TEST)}
# What makes them fit on the pods; none of it changes a number.
_PLACED = {
  '7B': ('rollout.slots=32', 'update.microbatch_prompts=1'),
  '14B': ('mesh.fsdp=2', 'mesh.tensor=2', 'rollout.slots=128'),
  '32B': ('mesh.fsdp=2', 'mesh.tensor=4', 'rollout.slots=128'),
}
_PODS = {
  '14b': ('gpu:h100:1x1x4', 'tpu:v5p:2x2x1'),
  '32b': ('gpu:h100:1x1x8', 'tpu:v5p:2x2x2'),
}
# Worked examples in the form that the grader reads, written for this package.
SHOTS = """\
Question: Tom has 3 pens and buys 5. How many has he?
Answer: 3 + 5 = 8 #### 8

Question: 6 bags have 7 nuts each. How many nuts?
Answer: 6 * 7 = 42 #### 42

Question: {question}
Answer:"""
_SMOLLM2 = (
  'iterations=30',
  "task.sources={'train': 'data/mawps_singleop.jsonl'}",
  'task.question={input}',
  'task.answer={target}',
  f'task.template=PlainTemplate(text={SHOTS!r})',
  'task.verifier=decimal',
  'task.hold_out=hash',
  'task.num_test=150',
  'model.path=models/smollm2',
  'model.config=null',
  'model.compute_dtype=float32',
  'model.remat=False',
  'rollout.num_prompts=32',
  'rollout.max_prompt_tokens=112',
  'rollout.overlong_prompt=skip',
  'rollout.max_response_tokens=24',
  "rollout.stop=('\\n',)",
  'update.minibatch_prompts=8',
  'update.microbatch_prompts=8',
  'optimizer.learning_rate=5e-6',
  'evaluation.sets=()',
  'evaluation.averages=()',
  'evaluation.split=test',
  'evaluation.num_prompts=150',
  'evaluation.batch_prompts=50',
  'evaluation.every=10',
  'checkpoint.every=5',
  'checkpoint.keep_last=2',
  'checkpoint.keep_best=0',
  'verifier.num_workers=1',
)
VARIANTS = {
  size.lower().replace('.', 'p'): (
    *settings.other_model(MODEL.format(size)),
    *_PLACED.get(size, ()),
  )
  for size in SIZES
}
_SIZED = tuple(VARIANTS)
VARIANTS |= {'smollm2': _SMOLLM2}
_PPO = Row(
  method='ppo',
  add=('method.losses=EntropyBonus(coef=0.001)',),
  set=(
    'method.shaping.KLInReward.coef=0.001',
    'method.credit.GAE.lam=1.0',
    'method.value_target.lam=1.0',
    'method.losses.ValueClip.clip=0.5',
    'model.value_head=True',
    'model.critic=own',
    'optimizer.critic_multiplier=10.0',
  ),
)
_LORA = Row(
  method='grpo',
  add=('method.losses=EntropyBonus(coef=0.001)',),
  set=(
    'method.losses.PPOClip.dual_clip=3.0',
    'method.aggregation=TokenMean()',
    'iterations=116',
    'model.lora_rank=32',
    'model.lora_alpha=32.0',
    'rollout.num_prompts=64',
    'rollout.group_size=5',
    'rollout.max_response_tokens=1024',
    'update.minibatch_prompts=64',
    'optimizer.learning_rate=3e-5',
  ),
)


def get_config(method: Method) -> ExperimentConfig:
  """256 prompts of one sample, four updates: 15 epochs are 435 iterations."""
  task = settings.task(
    TRAIN,
    ChatTemplate(user=PROMPT),
    extract='hash_number',
    verifier='text',
    last_characters=300,
  )
  return ExperimentConfig(
    iterations=435,
    task=task,
    method=method,
    model=settings.model(MODEL.format('0.5B')),
    rollout=RolloutConfig(
      num_prompts=256,
      group_size=1,
      max_prompt_tokens=1024,
      max_response_tokens=512,
    ),
    update=UpdateConfig(minibatch_prompts=64, microbatch_prompts=16),
    optimizer=OptimizerConfig(learning_rate=1e-6),
    evaluation=settings.evaluation(EVALUATION, task, every=10),
    verifier=VerifierConfig(num_workers=8, timeout_seconds=5.0),
  )


def _lora(variant):
  return dataclasses.replace(
    _LORA, variant=variant, pods=_PODS.get(variant, ())
  )


RECIPE = Recipe(
  title="verl's baselines on GSM8K",
  paper='verl, docs/algo/baseline.md',
  table='GSM8K, Qwen2.5-Instruct',
  source=(
    'volcengine/verl @ b178a3cd, docs/algo/baseline.md and '
    'verl/utils/reward_score/gsm8k.py; logs in eric-haibin-lin/verl-data, '
    'branch experiments, gsm8k/*.log'
  ),
  models=tuple(MODEL.format(size) for size in ('0.5B', *SIZES)),
  data=(TRAIN,),
  config=get_config,
  rows={
    'ppo_0p5b': _PPO,
    'grpo_lora_0p5b': _lora(''),
    **{f'grpo_lora_{variant}': _lora(variant) for variant in _SIZED},
  },
  small={
    'ppo_135m': dataclasses.replace(
      _PPO,
      variant='smollm2',
      note=(
        'SmolLM2-135M-Instruct in models/smollm2 (experiments.import_weights) '
        'on data/mawps_singleop.jsonl with fields input and target, 150 rows '
        'held out by hash. Of ppo_0p5b are the method, prompts of one sample, '
        'four updates, the critic and the mark #### of the grader. Others are '
        '32 prompts, as 256 take a quarter of an hour an iteration on two '
        'cores, of at most 112 tokens, their form with two worked examples, '
        '24 tokens, 30 iterations and the learning rates 5e-6 and 5e-5. One '
        'seed goes from 12.5% to 31.6% of 136 problems, and right samples from '
        '8% to 23%: experiments/papers/word_problems.'
      ),
    )
  },
  columns=('gsm8k',),
  evaluation=EVALUATION,
  published={
    ('model_0p5b', 'gsm8k'): 49.6,
    ('ppo_0p5b', 'gsm8k'): 56.7,
    ('grpo_lora_0p5b', 'gsm8k'): 54.3,
    ('prime_0p5b', 'gsm8k'): 58.7,
    ('grpo_lora_1p5b', 'gsm8k'): 77.9,
    ('grpo_lora_3b', 'gsm8k'): 86.1,
    ('grpo_lora_7b', 'gsm8k'): 93.4,
    ('remax_7b', 'gsm8k'): 97.0,
    ('grpo_lora_14b', 'gsm8k'): 94.6,
    ('grpo_lora_32b', 'gsm8k'): 95.8,
  },
  protocol='GSM8K test, one greedy response, the number after the last ####',
  follows='released code',
  stop='15 epochs, 435 rollouts (PPO); 116 rollouts (GRPO with adapters)',
  prompts=(
    (
      PROMPT,
      'verl, examples/data_preprocess/gsm8k.py @ b178a3cd',
      'Apache-2.0',
    ),
  ),
  hardware='one GPU (PPO, 0.5B); type not stated',
  hours='about 8: 66 s a rollout, 43 tests of 57 s (sums of the log)',
  left_out={
    'prime_0p5b': 'PRIME is not a method of this package',
    'remax_7b': 'its settings were not read',
  },
  unverified=(
    'one epoch of GRPO with adapters is read in the log of MATH at 0.5B',
    'the settings of GRPO with adapters for GSM8K, taken from that log',
    'settings of adapters above 0.5B, taken from those of 0.5B',
    "Qwen's default system message, which the chat template adds",
  ),
  weaker=(
    'the mark #### and its number were compared with the released grader on '
    'rows by hand only',
  ),
  traps=(
    'The strictly parsed accuracy starts near 0, not at 49.6: .013 after 10 '
    'steps, .458 after 30, .531 after 100, .579 at the best, .5686 at the end.',
    '56.7 is one point of a curve with a noise of about 1.5 points: compare '
    'the mean of the last ten tests, .555.',
    'The old validation dropped 7 of 1319 rows; how it sampled is not stated.',
    'The entropy bonus of 0.001 was on in these runs; later versions have 0.',
  ),
  chat=benchmarks.chatml(PROMPT),
  pods=('gpu:h100:1x1x1', 'tpu:v5p:1x1x1'),
)
