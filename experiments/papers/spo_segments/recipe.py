"""Segment Policy Optimization on GSM8K: one GPU, a model of 1.1B."""

from experiments.papers import settings
from experiments.papers.recipe import Benchmark, Recipe, Row
from experiments.papers.verl_baselines.recipe import TEST, TRAIN
from rl_jax.config import ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.tasks import PlainTemplate
from rl_jax.verification.pool import VerifierConfig

MODEL = 'realtreetune/rho-1b-sft-GSM8K'
PROMPT = '[MATH_TASK] Problem:\n{question}\n\nSolution:'
EVALUATION = {
  'gsm8k': Benchmark(data=TEST, samples=16, temperature=0.35, top_p=0.9)
}
_COMMON = (
  'method.shaping=NonStop(penalty=0.0)',
  'method.logits=TopP(p=0.9)',
  'method.credit=Whiten()',
)
# Wrappers of rollouts need whole groups.
_GROUPS = (
  'rollout.slots=128',
  'update.minibatch_rows=null',
  'update.microbatch_rows=null',
)
_PENALTY = ('method.losses=KLPenalty(coef=0.0001)',)


def get_config(method: Method) -> ExperimentConfig:
  """64 prompts of 8 samples, 16 updates in two epochs, 1024 tokens."""
  task = settings.task(
    TRAIN, PlainTemplate(PROMPT), extract='hash', verifier='decimal'
  )
  return ExperimentConfig(
    iterations=1000,
    task=task,
    method=method,
    model=settings.model(MODEL),
    rollout=RolloutConfig(
      num_prompts=64,
      group_size=8,
      max_prompt_tokens=1023,
      max_response_tokens=1024,
      temperature=0.6,
      stop=('\n\n\nProblem:',),
      overlong_prompt='skip',
    ),
    update=UpdateConfig(
      epochs=2, minibatch_rows=64, microbatch_rows=32, microbatch_prompts=4
    ),
    optimizer=OptimizerConfig(learning_rate=1e-6, warmup_steps=480),
    evaluation=settings.evaluation(EVALUATION, task, every=10),
    verifier=VerifierConfig(num_workers=8, timeout_seconds=5.0),
  )


RECIPE = Recipe(
  title='Segment Policy Optimization on GSM8K',
  paper='arXiv 2505.23564',
  table='GSM8K with short chains of thought',
  source=(
    'AIFrameResearch/SPO @ b9fc6a26, '
    'configs/polIter_rho1bSft2_{spo_chain,spo_tree,grpo,rloo}_GSM8K.jsonnet'
  ),
  models=(MODEL,),
  data=(TRAIN,),
  config=get_config,
  rows={
    'rloo': Row(method='rloo', add=_COMMON + _PENALTY),
    'grpo': Row(
      method='grpo',
      add=_COMMON,
      set=('method.losses.KLPenalty.coef=0.0001',),
    ),
    'spo_chain': Row(
      method='spo_chain',
      add=_COMMON + _PENALTY,
      set=(
        'method.rollout.samples=9',
        'method.rollout.max_cuts=25',
        'update.minibatch_prompts=8',
        *_GROUPS,
      ),
      tiny=('method.rollout.samples=2', 'method.rollout.max_cuts=2'),
    ),
    'spo_tree': Row(
      method='spo_tree',
      add=_COMMON + _PENALTY,
      set=(
        'method.rollout.branches=(6,6)',
        'rollout.num_prompts=16',
        'rollout.group_size=216',
        'update.epochs=1',
        'update.minibatch_prompts=2',
        *_GROUPS,
        'update.microbatch_prompts=1',
      ),
      tiny=(
        'method.rollout.branches=(2,2)',
        'method.rollout.segment_tokens=2',
      ),
    ),
  },
  columns=('gsm8k',),
  evaluation=EVALUATION,
  published={
    ('model', 'gsm8k'): 40.3,
    ('rest_em', 'gsm8k'): 42.8,
    ('rloo', 'gsm8k'): 44.5,
    ('grpo', 'gsm8k'): 44.6,
    ('dpo_positive', 'gsm8k'): 46.4,
    ('ppo', 'gsm8k'): 50.1,
    ('vine_ppo', 'gsm8k'): 53.4,
    ('spo_tree', 'gsm8k'): 56.4,
    ('spo_chain', 'gsm8k'): 56.7,
  },
  protocol='mean of 16 samples, temperature 0.35, top_p 0.9',
  follows='released code',
  stop='1000 rollouts',
  prompts=((PROMPT, 'AIFrameResearch/SPO @ b9fc6a26', 'not stated'),),
  hardware='one GPU; type not stated',
  left_out={
    'rest_em': 'the settings of this baseline were not read',
    'dpo_positive': 'the settings of this baseline were not read',
    'ppo': 'the settings of its critic were not read',
    'vine_ppo': 'it is not a method of this package',
  },
  transcribed=('the numbers, from a figure',),
  unverified=(
    'the sizes of the model, taken to be those of TinyLlama-1.1B',
    'segments of 30 tokens in the tree',
    'the number of prompts of the tree: 16 questions, 1024 episodes',
  ),
  weaker=(
    'the authors train on all but 373 rows of the training set, whose choice '
    'was not read; this recipe trains on all',
    'log-probabilities are those of the truncated distribution that sampled; '
    'the released code compares untruncated ones',
    'minibatches of spo_chain and spo_tree hold whole groups, not rows',
  ),
  traps=(
    'A base file has a KL coefficient of 0.05; the runs end with 1e-4.',
    'Advantages are whitened in all configurations.',
    'The GSM8K runs have 9 continuations of a cut; 4 is for other models.',
    'The data set of the authors is a file on an object store.',
  ),
  pods=('gpu:h100:1x1x1', 'tpu:v5p:1x1x1'),
)
