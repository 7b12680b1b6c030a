"""SimPO and its baselines on UltraFeedback, Mistral-7B and Llama-3-8B."""

from experiments.papers import benchmarks, settings
from experiments.papers.recipe import (
  Benchmark,
  ByHand,
  DataSource,
  Recipe,
  Row,
)
from rl_jax.config import ExperimentConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import PreferenceRows

MISTRAL = 'alignment-handbook/zephyr-7b-sft-full'
LLAMA = 'princeton-nlp/Llama-3-Base-8B-SFT'
PAIRS = DataSource(
  name='ultrafeedback_pairs',
  repository='hf:HuggingFaceH4/ultrafeedback_binarized',
  revision='main',
  path='data/train_prefs-00000-of-00001.parquet',
  columns=('prompt', 'chosen', 'rejected'),
  question='',
  answer='',
  keep=('prompt', 'chosen', 'rejected'),
  licence='MIT (the data set)',
)
VARIANTS = {
  'llama3_base': (
    *settings.other_model(LLAMA),
    'model.config.window=null',
    'model.config.windowed=()',
    'rollout.max_prompt_tokens=1800',
    'rollout.max_response_tokens=2048',
  )
}
JUDGED = ('alpaca_eval_lc', 'alpaca_eval_wr', 'arena_hard')
EVALUATION = {
  'arc_challenge': Benchmark(
    data=benchmarks.ARC_CHALLENGE,
    options='acc_per_character',
    max_tokens=128,
    changes=benchmarks.ARC_FIELDS,
  )
}
TABLE = {
  'model_mistral_base': (8.4, 6.2, 1.3),
  'dpo_mistral_base': (15.1, 12.5, 10.4),
  'simpo_mistral_base': (21.4, 20.8, 16.6),
  'model_llama3_base': (6.2, 4.6, 3.3),
  'dpo_llama3_base': (18.2, 15.5, 15.9),
  'simpo_llama3_base': (22.0, 20.3, 23.4),
  'dpo_mistral_instruct': (26.8, 24.9, 16.3),
  'simpo_mistral_instruct': (32.1, 34.8, 21.0),
  'dpo_llama3_instruct': (40.3, 37.9, 32.6),
  'simpo_llama3_instruct': (44.7, 40.5, 33.8),
}


def get_config(method: Method) -> ExperimentConfig:
  """128 pairs a step; 477 steps are one epoch of 61,135 pairs."""
  pairs = PreferenceRows(path=PAIRS.file, form='pair')
  return ExperimentConfig(
    iterations=477,
    seed=42,
    task=pairs,
    method=method,
    model=settings.model(MISTRAL),
    rollout=RolloutConfig(
      num_prompts=128,
      recorded_prompts=128,
      group_size=2,
      max_prompt_tokens=512,
      max_response_tokens=1024,
      overlong_prompt='skip',
    ),
    update=UpdateConfig(microbatch_prompts=8),
    optimizer=OptimizerConfig(
      learning_rate=3e-7, schedule='cosine', warmup_steps=48
    ),
    mesh=MeshConfig(data=1, fsdp=4),
    evaluation=settings.evaluation(EVALUATION, pairs, every=477),
  )


def _simpo(variant, beta, ratio, rate):
  return Row(
    method='simpo',
    variant=variant,
    set=(
      f'method.losses.PairLoss.score.beta={beta}',
      f'method.losses.PairLoss.link.gamma={beta * ratio}',
      f'optimizer.learning_rate={rate}',
    ),
  )


def _dpo(variant, method='dpo'):
  return Row(
    method=method,
    variant=variant,
    set=(
      'method.losses.PairLoss.score.beta=0.01',
      'optimizer.learning_rate=5e-7',
    ),
  )


_FACTS = (
  ('Is the earth round?', 'Yes.', 'Nobody knows.'),
  ('How many legs has a dog?', 'Four.', 'Five.'),
  ('Name a colour.', 'Blue.', 'Tuesday.'),
  ('What is ice?', 'Frozen water.', 'A metal.'),
)


def _by_hand():
  """Pairs of conversations that everybody would rank alike."""
  found = []
  for prompt, right, wrong in _FACTS:
    user = {'role': 'user', 'content': prompt}
    answers = [
      [user, {'role': 'assistant', 'content': x}] for x in (right, wrong)
    ]
    row = {'prompt': prompt, 'chosen': answers[0], 'rejected': answers[1]}
    found.append(ByHand(row=row))
  return tuple(found)


RECIPE = Recipe(
  title='SimPO and DPO on UltraFeedback',
  paper='arXiv 2405.14734',
  table='README: AlpacaEval 2 and Arena-Hard',
  source=(
    'princeton-nlp/SimPO @ 1b3e8f35, scripts/run_simpo.py, training_configs, '
    'README.md'
  ),
  models=(MISTRAL, LLAMA),
  data=(PAIRS,),
  config=get_config,
  rows={
    'simpo_mistral_base': _simpo('', 2.0, 0.8, 3e-7),
    'dpo_mistral_base': _dpo(''),
    'simpo_llama3_base': _simpo('llama3_base', 2.0, 0.5, 6e-7),
    'dpo_llama3_base': _dpo('llama3_base'),
  },
  columns=(*JUDGED, *EVALUATION),
  evaluation=EVALUATION,
  missing={
    column: 'a commercial model judges the responses' for column in JUDGED
  },
  published=settings.published(TABLE, JUDGED),
  protocol=(
    'AlpacaEval 2 of 805 prompts sampled at temperature 0.7 (Mistral) or 0.9 '
    '(Llama-3), Arena-Hard of 500 prompts greedily, both judged by GPT-4; '
    'ARC-Challenge by log-likelihood of the options, divided by their '
    'characters'
  ),
  follows='released code',
  stop='one epoch, 477 steps of 128 pairs',
  prompts=(
    (
      'the chat template of the model',
      "princeton-nlp/SimPO @ 1b3e8f35 renders the rows' conversations",
      'MIT',
    ),
  ),
  hardware='4 H100',
  left_out={
    'other_losses': 'settings of IPO, KTO, ORPO, CPO, RRHF, SLiC-HF and R-DPO '
    'were not read',
    **{
      name: 'the settings of its data set were not compared'
      for name in (
        'dpo_mistral_instruct',
        'simpo_mistral_instruct',
        'dpo_llama3_instruct',
        'simpo_llama3_instruct',
      )
    },
    'online_dpo': 'iterations of RLHFlow are a pipeline of samples, scores and '
    'DPO (configs/pipelines), not rows of one configuration',
  },
  unverified=(
    'number of pairs, 61,135, and by it the 477 steps',
    'weight decay 0 and clipping at 1, defaults of the trainer',
    'the path of the file of pairs',
    'ARC-Challenge is in an appendix, whose numbers were not read; its harness '
    'is lm-eval (an answer of the authors, issue 73)',
    'the path of the file of ARC-Challenge; cards say that it has 1,172 rows',
  ),
  weaker=(
    'of the columns only ARC-Challenge is measured here; the policy is saved, '
    'and its responses are for outside judges',
    'questions of ARC-Challenge have no worked examples in front of them, and '
    'few-shot numbers of a harness are higher',
    "only the assistant's turn counts in the mean log-prob; the released code "
    'counts the header of the turn of Llama-3, too',
    'the template of a Mistral model is that of its files',
    'pairs with a longer prompt than 512 tokens are left out, not cut',
  ),
  traps=(
    'gamma of the released settings is its ratio to beta; link.gamma here is '
    'the product.',
    'Results move by a point between evaluations of one checkpoint.',
    'A batch of 256 in place of 128 lost 11 points for another user.',
    'Newer tokenizers of Llama-3 write the first token twice.',
    'alpaca-eval after 0.6.2 decodes differently.',
  ),
  pods=('gpu:h100:1x1x4', 'tpu:v5p:2x2x1'),
  by_hand={
    'ultrafeedback_pairs': _by_hand(),
    'arc_challenge': benchmarks.ARC_BY_HAND,
  },
)
