"""ToRL, and OTC on it: GRPO with a Python interpreter, Qwen2.5-Math."""

import dataclasses

from experiments.papers import benchmarks, settings
from experiments.papers.recipe import Benchmark, DataSource, Recipe, Row
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import FencedCalls, PlainTemplate, ToolRules, WithTools
from rl_jax.verification import sandbox
from rl_jax.verification.pool import VerifierConfig

MODEL = 'Qwen/Qwen2.5-Math-{}'
PROMPT = (
  'A conversation between User and Assistant. The user asks a question, and '
  'the Assistant solves it.\nUser: Please integrate natural language reasoning '
  'with programs to solve the problem above, and put your final answer within '
  '\\boxed{}.\n{question}\nAssistant:\n'
)
ASKS = '```output'
TRAIN = DataSource(
  name='torl_train',
  repository='git:GAIR-NLP/ToRL',
  revision='cb78cf1c494c7595cf64385482918298fff5b7fb',
  path='data/torl_data/train.parquet',
  columns=('data_source', 'prompt.1.content', 'reward_model.ground_truth'),
  rows=28740,
  question='{prompt.1.content}',
  answer='{reward_model.ground_truth}',
)
EVALUATION = {
  'aime24': Benchmark(data=benchmarks.AIME24),
  'aime25': Benchmark(data=benchmarks.AIME25),
  'math500': Benchmark(data=benchmarks.MATH500),
  'olympiadbench': Benchmark(data=benchmarks.OLYMPIAD),
  'amc23': Benchmark(data=benchmarks.AMC23),
}
COLUMNS = (*EVALUATION, 'average')
# What makes it fit on its pods; none of it changes a number.
_OF_7B = ('mesh.fsdp=16', 'update.microbatch_prompts=16')
_PODS_7B = ('gpu:h100:1x2x8', 'tpu:v5p:2x2x4')
VARIANTS = {'7b': (*settings.other_model(MODEL.format('7B')), *_OF_7B)}
TABLE = {
  'model_1p5b_instruct': (10.0, 10.0, 66.0, 31.0, 62.5, 35.9),
  'model_1p5b_instruct_tools': (13.3, 13.3, 73.8, 41.3, 55.0, 41.3),
  'torl_1p5b': (26.7, 26.7, 77.8, 44.0, 67.5, 48.5),
  'model_7b_instruct_tools': (26.7, 16.7, 78.8, 45.0, 70.0, 47.4),
  'torl_7b': (43.3, 30.0, 82.2, 49.9, 75.0, 62.1),
}


def get_config(method: Method) -> ExperimentConfig:
  """128 prompts of 16 samples, one update, one program a response."""
  task = WithTools(
    task=settings.task(TRAIN, PlainTemplate(PROMPT)),
    functions=('python',),
    shown='none',
    form=FencedCalls(asks=ASKS),
    rules=ToolRules(max_calls=1, most_characters=256, judged='episode'),
    turn_seconds=10.0,
    limits=sandbox.Limits(
      packages=('sympy', 'mpmath', 'numpy'),
      memory_bytes=1 << 30,
      wall_seconds=10.0,
      cpu_seconds=10,
    ),
  )
  return ExperimentConfig(
    iterations=200,
    task=task,
    method=method,
    model=settings.model(MODEL.format('1.5B')),
    rollout=RolloutConfig(
      num_prompts=128,
      group_size=16,
      max_prompt_tokens=400,
      max_response_tokens=3072,
      stop=(ASKS,),
      show_stop=True,
      turns=TurnConfig(
        max_turns=2, max_turn_tokens=3072, max_observation_tokens=280
      ),
      overlong_prompt='skip',
    ),
    update=UpdateConfig(microbatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=1e-6),
    mesh=MeshConfig(data=1, fsdp=8),
    evaluation=settings.evaluation(EVALUATION, task, every=4),
    verifier=VerifierConfig(num_workers=32, timeout_seconds=20.0),
  )


_TORL = Row(method='grpo@token_mean')
RECIPE = Recipe(
  title='ToRL, and OTC on it',
  paper='arXiv 2503.23383 and arXiv 2504.14870',
  table='five benchmarks, greedy',
  source=(
    'GAIR-NLP/ToRL @ cb78cf1c, scripts/torl_1.5b.sh, '
    'verl/workers/rollout/vllm_rollout/vllm_rollout_spmd.py, ToRL.pdf'
  ),
  models=(MODEL.format('1.5B'), MODEL.format('7B')),
  data=(TRAIN,),
  config=get_config,
  rows={
    'torl_1p5b': _TORL,
    'torl_7b': dataclasses.replace(_TORL, variant='7b', pods=_PODS_7B),
    'otc_1p5b': Row(
      method='otc',
      set=(
        'method.losses.KLPenalty=null',
        'method.aggregation=TokenMean()',
      ),
      note='alpha and c are not in the text that was read',
    ),
  },
  columns=COLUMNS,
  average='average',
  evaluation=EVALUATION,
  published=settings.published(TABLE, COLUMNS),
  protocol='greedy, one response with one program',
  follows='released code',
  stop='200 rollouts, the end of the published curves; no file states it',
  prompts=(
    (
      PROMPT,
      'GAIR-NLP/ToRL @ cb78cf1c, verl/utils/dataset/rl_dataset.py, '
      'tir_base_0309',
      'not stated',
    ),
  ),
  hardware='8 A800 (1.5B)',
  hours='about 13: 237 s a rollout with one call, 200 rollouts (derived)',
  unverified=(
    'the step of the reported models',
    'settings of the 7B, taken from the script of the 1.5B',
    'the versions of OlympiadBench and AMC 23',
    'alpha 1 and c 1 of OTC, for which no code was found; its numbers on this '
    'setting were not read',
  ),
  weaker=(
    'rewards are 1 and 0, not 1 and -1, which group normalisation undoes',
    'after the call a second ```output ends the response; there it is text',
    'a program without output shows nothing; there it counts as a time-out',
    'errors of programs are shown in the words of this package',
    'OTC keeps the least number of calls of a prompt over epochs; here it is '
    'that of the group',
    'the program runs in the sandbox of this package with sympy and numpy; '
    'other packages cannot be imported',
  ),
  traps=(
    'The mean of the printed 7B row is 56.1, not 62.1.',
    'AIME by greedy decoding moves in steps of 3.3 points.',
    'The message of the system in the rows is not used; the question is '
    'after the instruction that calls it the problem above.',
    'The minibatch of 1024 prompts is larger than the batch of 128: there is '
    'one update a rollout.',
    'OTC has a Search-R1 baseline from a separate run: exact match .449 on NQ '
    'with 3.28 calls, against .446 with 1.04 of OTC-PPO and .444 with .99 of '
    'OTC-GRPO.',
  ),
  pods=('gpu:h100:1x1x8', 'tpu:v5p:2x2x2'),
)
