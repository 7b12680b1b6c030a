"""SPIRAL: self-play of Kuhn poker, measured on mathematics, Qwen3-4B-Base."""

import dataclasses

from experiments.papers import benchmarks, settings
from experiments.papers.recipe import Benchmark, Recipe, Row
from rl_jax.config import EvaluationConfig, ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import ChatTemplate
from rl_jax.verification.pool import VerifierConfig
from rl_jax.worlds import KuhnMatch

MODEL = 'Qwen/Qwen3-4B-Base'
USER = (
  'Question: {question}\nPlease reason step by step, and put your final answer '
  'within \\boxed{}.'
)


def _sampled(data, samples):
  return Benchmark(
    data=data, samples=samples, temperature=0.6, top_p=0.95, max_tokens=8192
  )


EVALUATION = {
  'math500': _sampled(benchmarks.MATH500, 1),
  'aime24': _sampled(benchmarks.AIME24, 32),
  'aime25': _sampled(benchmarks.AIME25, 32),
  'olympiadbench': _sampled(benchmarks.OLYMPIAD, 1),
  'amc23': _sampled(benchmarks.AMC23, 32),
  'minerva': _sampled(benchmarks.MINERVA, 1),
}
COLUMNS = (*EVALUATION, 'gpqa_diamond', 'mmlu_pro', 'average')
TABLE = {
  'model': (73.4, 9.6, 6.2, 33.3, 42.4, 29.4, 30.6, 47.2, 34.0),
  'spiral_kuhn': (76.4, 18.2, 15.6, 38.4, 61.2, 42.4, 37.0, 57.7, 43.4),
  'spiral_multi': (78.2, 19.7, 13.3, 41.8, 61.6, 42.6, 40.1, 58.5, 44.5),
}
AVERAGES = {
  'spiral_tic_tac_toe': 41.3,
  'spiral_negotiation': 40.0,
  'sft_multi': 39.7,
  'gemini_opponent_kuhn': 33.4,
}


def get_config(method: Method) -> ExperimentConfig:
  """Eight games, played from both places: about 128 turns an iteration."""
  return ExperimentConfig(
    iterations=400,
    task=KuhnMatch(num_train=100_000),
    method=method,
    model=settings.model(MODEL),
    rollout=RolloutConfig(
      num_prompts=16,
      group_size=1,
      max_prompt_tokens=512,
      max_response_tokens=12288,
      turns=TurnConfig(
        max_turns=10, max_turn_tokens=4096, max_observation_tokens=256
      ),
    ),
    update=UpdateConfig(epochs=2, microbatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=1e-6, b2=0.95),
    mesh=MeshConfig(data=1, fsdp=8),
    evaluation=EvaluationConfig(every=0),
    verifier=VerifierConfig(num_workers=8, timeout_seconds=5.0),
  )


def evaluated(config: ExperimentConfig) -> ExperimentConfig:
  """The benchmarks; a game of two players cannot be one of several tasks."""
  task = settings.task(benchmarks.MATH500, ChatTemplate(user=USER))
  return dataclasses.replace(
    config,
    task=task,
    rollout=dataclasses.replace(
      config.rollout,
      turns=None,
      max_prompt_tokens=2048,
      max_response_tokens=8192,
      overlong_prompt='skip',
    ),
    evaluation=settings.evaluation(EVALUATION, task, every=1),
  )


RECIPE = Recipe(
  title='SPIRAL on Qwen3-4B-Base',
  paper='arXiv 2506.24119',
  table='Table 1',
  source=(
    'spiral-rl/spiral @ a02d0ed8, run.sh, train_spiral.py, spiral/template.py'
  ),
  models=(MODEL,),
  data=(),
  config=get_config,
  evaluated=evaluated,
  rows={
    'spiral_kuhn': Row(
      method='spiral',
      tiny=(
        'rollout.max_response_tokens=128',
        'rollout.turns.max_observation_tokens=64',
        'rollout.max_prompt_tokens=640',
      ),
    )
  },
  columns=COLUMNS,
  average='average',
  evaluation=EVALUATION,
  missing={
    'gpqa_diamond': 'its source and count were not verified',
    'mmlu_pro': 'its source and count were not verified',
  },
  published=settings.published(TABLE, COLUMNS, AVERAGES),
  protocol=(
    'temperature 0.6, top_p 0.95, 8192 tokens; the mean of 32 samples on AIME '
    'and AMC, one sample on the others'
  ),
  follows='released code',
  stop='400 steps of 128 turns',
  prompts=((USER, 'written here after the prompt type qwen3-self-play', '-'),),
  hardware='8 H100',
  hours='25 (Qwen3-4B)',
  left_out={
    'spiral_multi': 'a baseline by game and role needs games of one task',
    'spiral_tic_tac_toe': 'its game is in the optional package textarena only',
    'spiral_negotiation': 'its game is not in this package',
    'sft_multi': 'its 25,000 rows were not read',
    'gemini_opponent_kuhn': 'the opponent is a commercial model',
  },
  transcribed=('the table', 'hours'),
  unverified=(
    'the text of the prompts of problems',
    'that one sample is drawn where the paper says pass@1',
  ),
  weaker=(
    'a row is a game with all of its turns, thoughts included; there every '
    'turn is a row whose prompt has the observations and no earlier thoughts',
    'rows with an advantage of 0 stay in the mean',
    'the rules are in the words of this package; players begin in turn',
    'the table is measured by experiments.evaluate, not during training, and '
    'is not in the hours of the plan',
  ),
  traps=(
    'Responses have 4096 tokens in the script, 8192 in the paper.',
    'The script evaluates with 4 samples, the paper with 32.',
    'The text of the appendix quotes other averages than Table 1.',
    'GPQA and MMLU-Pro of the base model are few-shot, all else zero-shot.',
    'Without the baseline by role thoughts collapse near step 150 (paper).',
  ),
  pods=('gpu:h100:1x1x8', 'tpu:v5p:2x2x2'),
)
