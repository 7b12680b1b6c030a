"""RLVR of Tulu 3: PPO with verifiable rewards, Llama-3.1-Tulu-3-8B."""

from experiments.papers import benchmarks, settings
from experiments.papers.recipe import (
  Benchmark,
  ByHand,
  DataSource,
  Recipe,
  Row,
)
from rl_jax.config import ExperimentConfig, GuardConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import ChatTemplate, Mixture, MixturePart
from rl_jax.verification.pool import VerifierConfig

MODEL = 'allenai/Llama-3.1-Tulu-3-8B-DPO'
CRITIC = 'allenai/Llama-3.1-Tulu-3-8B-RM'
USER = '{question}'


def _rows_of(name, kind, rows):
  return DataSource(
    name=name,
    repository='hf:allenai/RLVR-GSM-MATH-IF-Mixed-Constraints',
    revision='main',
    path='data/train-00000-of-00001.parquet',
    columns=('messages', 'ground_truth', 'dataset'),
    rows=rows,
    question='{messages}',
    answer='{ground_truth}',
    only=('dataset', kind),
  )


GSM8K = _rows_of('tulu3_gsm8k', 'gsm8k', 7473)
MATH = _rows_of('tulu3_math', 'MATH', 7500)
EVALUATION = {'gsm8k': Benchmark(data=benchmarks.GSM8K)}
TABLE = {
  'model_dpo': (84.3, 42.0, 81.1, 64.4),
  'rlvr': (87.6, 43.7, 82.4, 64.8),
}
COLUMNS = ('gsm8k', 'math', 'ifeval', 'average_11')


def get_config(method: Method) -> ExperimentConfig:
  """224 prompts of one sample, four passes: 446 iterations are 100,000 rows."""
  template = ChatTemplate(user=USER)
  words = settings.task(
    GSM8K, template, extract='last_number', verifier='number'
  )
  formulas = settings.task(MATH, template)
  return ExperimentConfig(
    iterations=446,
    seed=3,
    task=Mixture(
      (
        MixturePart('gsm8k', words, 7473.0),
        MixturePart('math', formulas, 7500.0),
      )
    ),
    method=method,
    model=settings.model(
      MODEL,
      value_head=True,
      critic='own',
      value_from=settings.model_path(CRITIC),
    ),
    rollout=RolloutConfig(
      num_prompts=224,
      group_size=1,
      max_prompt_tokens=2048,
      max_response_tokens=2048,
      staleness=1,
      slots=128,
      overlong_prompt='skip',
    ),
    update=UpdateConfig(epochs=4, microbatch_prompts=32),
    optimizer=OptimizerConfig(learning_rate=3e-7, eps=1e-5),
    mesh=MeshConfig(data=1, fsdp=8),
    evaluation=settings.evaluation(EVALUATION, words, every=100),
    verifier=VerifierConfig(num_workers=16, timeout_seconds=5.0),
    guards=GuardConfig(max_logp_gap=None),
  )


def _by_hand(kind, right):
  """Sums with the columns of the data."""
  return tuple(
    ByHand(
      row={
        'messages': [{'role': 'user', 'content': f'What is {n} + {n}?'}],
        'ground_truth': str(2 * n),
        'dataset': kind,
      },
      right=right % (2 * n),
      wrong=right % (2 * n + 1),
    )
    for n in range(1, 7)
  )


RECIPE = Recipe(
  title='RLVR of Tulu 3 on Llama-3.1-8B',
  paper='arXiv 2411.15124',
  table='Table 23: from DPO to RLVR, 8B',
  source=(
    'allenai/open-instruct @ e6c3044a, docs/tulu3.md and '
    'open_instruct/ground_truth_utils.py; ppo_vllm_thread_ray_gtrl.py @ '
    '9502f163'
  ),
  models=(MODEL, CRITIC),
  data=(GSM8K, MATH),
  config=get_config,
  rows={
    'rlvr': Row(
      method='rlvr@released',
      tiny=('model.value_from=null',),
    )
  },
  columns=COLUMNS,
  evaluation=EVALUATION,
  missing={
    'math': 'the four worked examples of its prompt were not read',
    'ifeval': 'its 25 kinds of instructions have no verifier here',
    'average_11': 'of eleven sets, of which one is measured',
  },
  published=settings.published(TABLE, COLUMNS),
  protocol='GSM8K with eight worked examples there, without any here; greedy',
  follows='released code',
  stop=(
    '100,000 episodes, as Table 21; the script has 10,000,000 and was stopped, '
    'and the best checkpoint on MATH and IFEval was taken'
  ),
  prompts=((USER, "the rows' own messages, with few-shot text", 'not stated'),),
  hardware='8 GPUs; type not stated',
  hours='65 (8B)',
  transcribed=('the table', 'counts of rows', 'Table 21'),
  unverified=(
    'the path of the file, and the names of its columns but for these three',
    'greedy decoding of the evaluation',
    'numbers of prompts of GSM8K and MATH: another file says 7,470',
  ),
  weaker=(
    'the 14,973 prompts with constraints of IFEval are left out',
    'MATH is verified on its box only; there are three candidates there',
    'the learning rate is constant; there it falls to 0 over ten million '
    'episodes, of which 100,000 are trained',
    'the reward model that starts the critic is to be imported by '
    'experiments.import_weights to models/Llama-3.1-Tulu-3-8B-RM',
    'sizes of the model in plans are those of Llama-3.1-8B, whose vocabulary '
    'is smaller',
  ),
  traps=(
    'IFEval of the data needs the old verifier of the repository.',
    'The four updates see the whole batch: there is one minibatch.',
    'The value loss has half the squared error times 0.1.',
    'A gain of 0.4 points on the average is within the noise of seeds of their '
    'SFT; GSM8K (+3.3) is clear.',
    'Table 6 has IFEval loose, Table 23 strict.',
  ),
  pods=('gpu:h100:1x1x8', 'tpu:v5p:2x2x2'),
  by_hand={
    'tulu3_gsm8k': _by_hand('gsm8k', 'So the answer is %d.'),
    'tulu3_math': _by_hand('MATH', 'So \\boxed{%d}.'),
  },
)
