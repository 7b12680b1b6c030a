"""ToolRL: GRPO and PPO on function calls, Qwen2.5-1.5B to 7B-Instruct."""

from experiments.papers import settings
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
from rl_jax.tasks import ChatTemplate, RewardFunctions
from rl_jax.verification.pool import VerifierConfig

MODEL = 'Qwen/Qwen2.5-{}-Instruct'
USER = '{question}'
_REPOSITORY = 'git:qiancheng0/ToolRL'
_COMMIT = '8cee13ec0ca72f0461da372a93a6fd8140dbb840'
_SHA256 = {
  1: '51ebc8209ba467ce4cc1854d23b2cfd89759f3c45ff2aaf90de4f003162ea98f',
  2: '75c8097b3127d1f7aec13edb6b7a8428565d753b107f2b1e20daa3d0cfda51db',
  3: '57228427976f05725d9cf2f0ab03ac16487efaed67d5a929b28e974b9b27ef05',
}
TRAIN = DataSource(
  name='toolrl_rlla_4k',
  repository=_REPOSITORY,
  revision=_COMMIT,
  path='dataset/rlla_4k/train.parquet',
  columns=('data_source', 'prompt', 'reward_model.ground_truth'),
  question='{prompt}',
  answer='{reward_model.ground_truth}',
  licence='Apache-2.0 (the repository)',
)


def _level(number, rows):
  """A level of API-Bank; questions that occur twice count twice."""
  return Benchmark(
    data=DataSource(
      name=f'toolrl_api_bank_{number}',
      repository=_REPOSITORY,
      revision=_COMMIT,
      path=f'benchmarks/API-Bank/level-{number}-api_processed.json',
      columns=('system', 'user', 'answer'),
      rows=rows,
      sha256=_SHA256[number],
      question='{user}',
      system='{system}',
      answer='',
      keep=('answer',),
      repeats=True,
      licence='Apache-2.0 (the repository)',
    ),
    max_tokens=2048,
  )


EVALUATION = {
  'level_1': _level(1, 399),
  'level_2': _level(2, 67),
  'level_3': _level(3, 131),
}
# What makes them fit on their pods; it changes no number.
VARIANTS = {
  '3b': (*settings.other_model(MODEL.format('3B')), 'mesh.fsdp=4'),
  '7b': (*settings.other_model(MODEL.format('7B')), 'mesh.fsdp=8'),
}
_PODS = {
  '3b': ('gpu:h100:1x1x4', 'tpu:v5p:2x2x1'),
  '7b': ('gpu:h100:1x1x8', 'tpu:v5p:2x2x2'),
}
# BFCL v3 overall, API-Bank overall; None: not printed.
TABLE = {
  'model_1p5b': (19.41, 30.65),
  'sft400_1p5b': (40.21, 53.60),
  'ppo_1p5b': (None, 40.54),
  'grpo_1p5b': (46.20, 63.15),
  'model_3b': (33.04, 51.59),
  'sft400_3b': (34.08, 52.76),
  'ppo_3b': (None, 57.62),
  'grpo_3b': (52.98, 67.00),
  'model_7b': (41.97, None),
  'sft400_7b': (34.08, None),
  'sft4k_7b': (36.53, None),
  'ppo_7b': (46.68, None),
  'grpo_7b': (58.38, 64.66),
}


def get_config(method: Method) -> ExperimentConfig:
  """512 prompts of four samples, four updates: 15 epochs are 105 iterations."""
  task = settings.task(
    TRAIN, ChatTemplate(user=USER), extract='whole', verifier='text'
  )
  calls = RewardFunctions(
    task=task, functions={'rl_jax.tasks.call_reward:toolrl': 1.0}
  )
  graded = RewardFunctions(
    task=settings.with_rows(task, answer=''),
    functions={'rl_jax.tasks.call_reward:api_bank': 1.0},
  )
  return ExperimentConfig(
    iterations=105,
    task=calls,
    method=method,
    model=settings.model(MODEL.format('1.5B')),
    rollout=RolloutConfig(
      num_prompts=512,
      group_size=4,
      max_prompt_tokens=2048,
      max_response_tokens=1024,
      overlong_prompt='skip',
      slots=1024,
    ),
    update=UpdateConfig(minibatch_prompts=128, microbatch_prompts=8),
    optimizer=OptimizerConfig(learning_rate=1e-6),
    mesh=MeshConfig(data=1, fsdp=2),
    evaluation=settings.evaluation(EVALUATION, graded, every=5, by_rows=True),
    verifier=VerifierConfig(num_workers=8, timeout_seconds=5.0),
  )


def _grpo(variant):
  return Row(
    method='toolrl@released', variant=variant, pods=_PODS.get(variant, ())
  )


def _ppo(variant):
  return Row(
    method='ppo@released',
    variant=variant,
    set=(
      'model.value_head=True',
      'model.critic=own',
      'optimizer.critic_multiplier=10.0',
      'rollout.group_size=1',
      'rollout.max_prompt_tokens=1024',
      'rollout.max_response_tokens=512',
      'update.microbatch_prompts=32',
    ),
    pods=_PODS.get(variant, ()),
  )


def _label(*parts):
  return '\n'.join(('<think> I need it. </think>', *parts))


def _by_hand(count):
  """Requests of the weather, answered by a call, by a text or by both."""
  found = []
  for n in range(count):
    call = f'{{"name": "weather", "parameters": {{"day": "{n}"}}}}'
    called = f'<tool_call>\n{call}\n</tool_call>'
    prompt = [
      {'role': 'system', 'content': 'Tools: weather(day).'},
      {'role': 'user', 'content': f'<user> The weather of day {n}? </user>'},
    ]
    right = _label(called)
    found.append(
      ByHand(
        row={
          'data_source': 'rlla',
          'prompt': prompt,
          'reward_model': {'ground_truth': right},
        },
        right=right,
        wrong=right.replace(f'"{n}"', '"x"'),
      )
    )
  return tuple(found)


def _level_by_hand(form):
  """The same in the form of API-Bank: the right call in a list, or not."""
  call = {'name': 'weather', 'parameters': {'day': '1'}}
  return tuple(
    ByHand(
      row={'system': 'Tools.', 'user': f'Day 1? {n}', 'answer': form(call)}
    )
    for n in range(4)
  )


RECIPE = Recipe(
  title='ToolRL on Qwen2.5-Instruct',
  paper='arXiv 2504.13958',
  table='BFCL v3 and API-Bank, overall',
  source=(
    'qiancheng0/ToolRL @ 8cee13ec, train_grpo.sh, train_ppo.sh, '
    'verl/utils/reward_score/rlla.py, benchmarks/API-Bank'
  ),
  models=tuple(MODEL.format(size) for size in ('1.5B', '3B', '7B')),
  data=(TRAIN,),
  config=get_config,
  rows={
    'grpo_1p5b': _grpo(''),
    'ppo_1p5b': _ppo(''),
    'grpo_3b': _grpo('3b'),
    'ppo_3b': _ppo('3b'),
    'grpo_7b': _grpo('7b'),
    'ppo_7b': _ppo('7b'),
  },
  columns=('bfcl_v3', *EVALUATION, 'api_bank'),
  average='api_bank',
  averaged=tuple(EVALUATION),
  evaluation=EVALUATION,
  missing={
    'bfcl_v3': 'its package asks a server or vLLM: export the weights for it'
  },
  published=settings.published(TABLE, ('bfcl_v3', 'api_bank')),
  protocol=(
    'API-Bank: greedy; a response is right if one of its calls is the right '
    'one; overall is the share of all 597 rows'
  ),
  follows='released code',
  stop='15 epochs, 105 rollouts; the last saved checkpoint there is that of 90',
  prompts=(
    (
      USER,
      "the rows' own messages of system and user, qiancheng0/ToolRL",
      'Apache-2.0',
    ),
  ),
  hardware='2 GPUs; type not stated',
  left_out={
    name: 'supervised training first, whose settings were not read'
    for name in (
      *('sft400_1p5b', 'sft400_3b', 'sft400_7b'),
      'sft4k_7b',
    )
  },
  transcribed=('the tables',),
  unverified=(
    'the number of training rows, 3920 if the file of both splits has 4000',
    'that the released checkpoints are of the last saved step',
  ),
  weaker=(
    'responses of API-Bank have 2048 tokens; the script lets prompt and '
    'response share 4096',
    'a response of API-Bank that breaks the released reader in the middle '
    'loses later calls there, here only the call that breaks it',
  ),
  traps=(
    'The paper has no KL; the script turns the KL loss off, by which the '
    'trainer puts a KL of 0.001 into the reward.',
    'The entropy bonus of 0.001 is a default of the trainer that the script '
    'leaves on.',
    "The table's BFCL numbers of models before training come from a separate "
    'handler and are far below the leaderboard.',
    'Another group measured 58.96 (1.5B) and 62.98 (3B) on API-Bank for GRPO, '
    '56.28 and 47.57 for PPO, and 33.84 for the 3B model before training.',
    'The reward raises an error unless EXPERIMENT_NAME has qwen or llama in '
    'it.',
  ),
  pods=('gpu:h100:1x1x2', 'tpu:v5p:1x1x2'),
  by_hand={
    'toolrl_rlla_4k': _by_hand(6),
    'toolrl_api_bank_1': _level_by_hand(lambda call: [call]),
    'toolrl_api_bank_2': _level_by_hand(lambda call: call),
    'toolrl_api_bank_3': _level_by_hand(lambda call: [call]),
  },
)
