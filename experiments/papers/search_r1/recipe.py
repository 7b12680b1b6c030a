"""Search-R1 and LLDS: PPO, GRPO and GSPO with a search engine, 3B and 7B."""

import dataclasses

from experiments.papers import settings
from experiments.papers.recipe import (
  Benchmark,
  ByHand,
  DataSource,
  Recipe,
  Row,
)
from rl_jax.config import ExperimentConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import Method
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.runtime.mesh import MeshConfig
from rl_jax.tasks import MarkedCalls, PlainTemplate, ToolRules, WithTools
from rl_jax.verification.pool import VerifierConfig

MODEL = 'Qwen/Qwen2.5-{}'
URL = 'http://127.0.0.1:8000/retrieve'
BEFORE = (
  'Answer the given question. You must conduct reasoning inside <think> and '
  '</think> first every time you get new information. After reasoning, if you '
  'find you lack some knowledge, you can call a search engine by <search> '
  'query </search> and it will return the top searched results between '
  '<information> and </information>. You can search as many times as your '
  'want. If you find no further external knowledge needed, you can directly '
  'provide the answer inside <answer> and </answer>, without detailed '
  'illustrations. For example, <answer> Beijing </answer>. Question: '
)
# ChatML written out: what the retriever says is within the assistant's turn.
PROMPT = (
  '<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a '
  f'helpful assistant.<|im_end|>\n<|im_start|>user\n{BEFORE}{{question}}\n'
  '<|im_end|>\n<|im_start|>assistant\n'
)
INVALID = (
  '\nMy previous action is invalid. If I want to search, I should put the '
  'query between <search> and </search>. If I want to give the final answer, I '
  'should put the answer between <answer> and </answer>. Let me try again.\n'
)


def _rows_of(name, file, **fields):
  return DataSource(
    name=name,
    repository='hf:PeterJinGo/nq_hotpotqa_train',
    revision='main',
    path=f'{file}.parquet',
    columns=(
      'data_source',
      'prompt.0.content',
      'reward_model.ground_truth.target',
    ),
    question='{prompt.0.content}',
    prefix=BEFORE,
    suffix='\n',
    answer='{reward_model.ground_truth.target}',
    **fields,
  )


TRAIN = _rows_of('search_r1_train', 'train')
# Name in the file -> (column, about how many rows).
SETS = {
  'nq': ('nq', 3610),
  'triviaqa': ('triviaqa', 11313),
  'popqa': ('popqa', 14267),
  'hotpotqa': ('hotpotqa', 7405),
  '2wikimultihopqa': ('2wiki', 12576),
  'musique': ('musique', 2417),
  'bamboogle': ('bamboogle', 125),
}
EVALUATION = {
  column: Benchmark(
    data=_rows_of(
      f'search_r1_{column}', 'test', only=('data_source', name), repeats=True
    ),
    about=about,
  )
  for name, (column, about) in SETS.items()
}
COLUMNS = (*EVALUATION, 'average')
_OTHERS = ('3B-Instruct', '7B', '7B-Instruct')
VARIANTS = {
  size.lower().replace('-', '_'): settings.other_model(MODEL.format(size))
  for size in _OTHERS
}
TABLE = {
  'ppo_3b': (0.406, 0.587, 0.435, 0.284, 0.273, 0.049, 0.088, 0.303),
  'ppo_3b_instruct': (0.341, 0.545, 0.378, 0.324, 0.319, 0.103, 0.264, 0.325),
  'ppo_7b': (0.480, 0.638, 0.457, 0.433, 0.382, 0.196, 0.432, 0.431),
  'ppo_7b_instruct': (0.393, 0.610, 0.397, 0.370, 0.414, 0.146, 0.368, 0.385),
  'grpo_3b': (0.421, 0.583, 0.413, 0.297, 0.274, 0.066, 0.128, 0.312),
  'grpo_3b_instruct': (0.397, 0.565, 0.391, 0.331, 0.310, 0.124, 0.232, 0.336),
  'grpo_7b': (0.395, 0.560, 0.388, 0.326, 0.297, 0.125, 0.360, 0.350),
  'grpo_7b_instruct': (0.429, 0.623, 0.427, 0.386, 0.346, 0.162, 0.400, 0.396),
  'llds_3b_instruct': (0.462, 0.627, 0.468, 0.443, 0.447, 0.197, 0.444, 0.441),
  'llds_7b': (0.512, 0.672, 0.480, 0.486, 0.469, 0.232, 0.508, 0.480),
}
# Only the average is known.
AVERAGES = {
  'rag_3b': 0.270,
  'rag_7b': 0.304,
  'llds_3b': 0.360,
  'llds_ma_3b': 0.440,
  'llds_7b_instruct': 0.483,
  'gspo_3b_instruct': 0.331,
  'gspo_llds_3b_instruct': 0.451,
}


def get_config(method: Method) -> ExperimentConfig:
  """512 prompts, four searches at most, 1005 iterations."""
  task = WithTools(
    task=settings.task(
      TRAIN,
      PlainTemplate(PROMPT),
      extract='answer_tags',
      verifier='squad',
    ),
    functions=(f'retrieve:{URL}',),
    shown='none',
    form=MarkedCalls(
      tool='retrieve',
      argument='query',
      opening='<search>',
      closing='</search>',
      result='\n\n<information>{result}</information>\n\n',
      closed=True,
    ),
    rules=ToolRules(ends=('</answer>',), no_call=INVALID, judged='episode'),
    turn_seconds=30.0,
  )
  return ExperimentConfig(
    iterations=1005,
    task=task,
    method=method,
    model=settings.model(MODEL.format('3B')),
    rollout=RolloutConfig(
      num_prompts=512,
      group_size=5,
      max_prompt_tokens=2048,
      max_response_tokens=4096,
      stop=('</search>', '</answer>'),
      show_stop=True,
      turns=TurnConfig(
        max_turns=5, max_turn_tokens=500, max_observation_tokens=500
      ),
      overlong_prompt='skip',
    ),
    update=UpdateConfig(minibatch_prompts=64, microbatch_prompts=16),
    optimizer=OptimizerConfig(
      learning_rate=1e-6, warmup_steps=286, warmup_unit='rollouts'
    ),
    mesh=MeshConfig(data=1, fsdp=8),
    evaluation=settings.evaluation(EVALUATION, task, every=100),
    verifier=VerifierConfig(num_workers=32, timeout_seconds=40.0),
  )


_PPO = (
  'model.value_head=True',
  'model.critic=own',
  'optimizer.critic_multiplier=10.0',
  'rollout.group_size=1',
  'update.minibatch_prompts=256',
  'update.microbatch_prompts=32',
)
# 512 prompts of 5 rows in minibatches of 256 rows, which cut groups.
_GRPO = (
  'update.minibatch_prompts=null',
  'update.microbatch_prompts=16',
  'update.minibatch_rows=256',
  'update.microbatch_rows=64',
)
_SIXTEEN = ('gpu:h100:1x2x8', 'tpu:v5p:2x2x4')
_THIRTY_TWO = ('gpu:h100:1x4x8', 'tpu:v5p:2x4x4')
# (a 7B, groups of five) -> settings and pods: all episodes of a rollout need
# more memory than the 8 devices of the authors have.
_PLACES = {
  (False, False): ((), ()),
  (False, True): (('mesh.tensor=2',), _SIXTEEN),
  (True, False): (('mesh.fsdp=16',), _SIXTEEN),
  (True, True): (('mesh.fsdp=16', 'mesh.tensor=2'), _THIRTY_TWO),
}
# In bytes the prompt is long.
_SMALL = ('rollout.max_prompt_tokens=1024',)
_SMALL_ROWS = (
  *_SMALL,
  'update.minibatch_prompts=null',
  'update.minibatch_rows=8',
  'update.microbatch_rows=null',
)
# Three searches, as the script of LLDS.
_LLDS = ('rollout.turns.max_turns=4',)


def _variant(model):
  return '' if model == '3b' else model


def _row(method, model, grouped, sets, tiny):
  """A method on a model, with the settings and pods that have the memory."""
  placed, pods = _PLACES['7b' in model, grouped]
  return Row(
    method=method,
    variant=_variant(model),
    set=(*sets, *placed),
    tiny=tiny,
    pods=pods,
  )


def _rows():
  """Every method on every model that it was printed for."""
  found = {}
  for model in ('3b', *VARIANTS):
    found[f'ppo_{model}'] = _row('ppo@released', model, False, _PPO, _SMALL)
    found[f'grpo_{model}'] = _row(
      'grpo@released', model, True, _GRPO, _SMALL_ROWS
    )
    found[f'llds_{model}'] = _row('llds@released', model, True, _LLDS, _SMALL)
  gspo = _row('gspo', '3b_instruct', True, _LLDS, _SMALL)
  added = ('method.losses=LLDS(coef=0.2, aggregation=TokenMean())',)
  return found | {
    'gspo_3b_instruct': gspo,
    'gspo_llds_3b_instruct': dataclasses.replace(gspo, add=added),
  }


_FACTS = (
  ('Which city is the capital of France?', ('Paris',)),
  ('Which city is the capital of Switzerland?', ('Bern', 'Berne')),
  ('Which river runs through Cologne?', ('the Rhine', 'Rhine')),
  ('Which planet is the largest?', ('Jupiter',)),
  ('Who wrote Faust?', ('Goethe', 'Johann Wolfgang von Goethe')),
  ('Which metal is liquid at room temperature?', ('mercury',)),
)


def _by_hand(source):
  """Facts that everybody knows, each with its right answers."""
  kind = source.only[1] if source.only else 'nq'
  return tuple(
    ByHand(
      row={
        'data_source': kind,
        'prompt': [{'role': 'user', 'content': f'{BEFORE}{question}\n'}],
        'reward_model': {'ground_truth': {'target': list(golds)}},
      },
      right=f'<think>a</think><answer> The {golds[-1].upper()}. </answer>',
      wrong=f'<think>{golds[0]}</think><answer> Beijing </answer>',
    )
    for question, golds in _FACTS
  )


RECIPE = Recipe(
  title='Search-R1 and LLDS on Qwen2.5',
  paper='arXiv 2503.09516 and arXiv 2512.04220',
  table='exact match on seven question-answering sets',
  source=(
    'PeterGriffinJin/Search-R1 @ a14dc3a4, scripts/nq_hotpotqa/v0.2, '
    'search_r1/llm_agent/generation.py, verl/utils/reward_score/qa_em.py; '
    'vengdeng/LLDS-On-Group-Relative-Policy-Optimization-Collapse-in-Search-R1 '
    '@ c19a0942, train_grpo_nqhot.sh'
  ),
  models=tuple(MODEL.format(size) for size in ('3B', *_OTHERS)),
  data=(TRAIN,),
  config=get_config,
  rows=_rows(),
  columns=COLUMNS,
  average='average',
  evaluation=EVALUATION,
  published=settings.published(TABLE, COLUMNS, AVERAGES),
  protocol=(
    'all rows of each set, greedy, four searches of three passages; exact '
    'match without case, punctuation and articles; the plain mean of the sets'
  ),
  follows='released code',
  stop=(
    '1005 rollouts by the scripts; the paper says 500, and its GRPO rows are '
    'the best checkpoints before a collapse'
  ),
  prompts=(
    (
      PROMPT,
      'PeterGriffinJin/Search-R1 @ a14dc3a4, '
      'scripts/data_process/qa_search_train_merge.py, in the chat form of Qwen',
      'Apache-2.0',
    ),
    (
      INVALID,
      'PeterGriffinJin/Search-R1 @ a14dc3a4, search_r1/llm_agent/generation.py',
      'Apache-2.0',
    ),
  ),
  hardware='8 H100 (Search-R1), 4 GPUs (LLDS)',
  left_out={
    'llds_ma_3b': 'LLDS here has no mask of the answer',
    'rag_3b': 'retrieval without training is not a method of this package',
    'rag_7b': 'retrieval without training is not a method of this package',
  },
  transcribed=('both tables',),
  unverified=(
    'numbers of rows: 169,615 of training, 51,713 of all seven sets, of which '
    'plans take the usual shares',
    "the system message of Qwen2.5's own chat template; that of base models "
    'may differ',
    'that GSPO has the other settings of the script of LLDS',
  ),
  weaker=(
    'the retriever is not part of this package: e5 over wiki-18, by '
    'retrieval_launch.sh of Search-R1; experiments.tools.retriever takes '
    'its place with other passages',
    'an episode asks by its own request, not all of a batch by one',
    'one warm-up of 286 rollouts for policy and critic; the script of PPO '
    'has 15 for the critic',
    'groups of LLDS stay together in minibatches of 64 prompts, eight updates '
    'a rollout in place of ten',
    'the released GRPO script samples with top_p 0.95 by a default, here 1',
    'all episodes of a rollout are played at a time: groups and PPO of a 7B '
    'are planned on 16 devices, groups of a 7B on 32, where the authors have 8 '
    'or 4',
    'an episode that is full at 4096 tokens ends; there its oldest tokens '
    'leave the context',
  ),
  traps=(
    'Minibatches of 256 are counted in rows: PPO has two updates a rollout, '
    'GRPO ten, whose minibatches cut groups.',
    'Passages are cut at 500 tokens, which often drops the third one.',
    'Group indices of v0.1 of the repository were wrong; v0.2 is the paper.',
    'Later measurements are 6 to 10 points above the paper: SkyRL reports .421 '
    'for 3B-Instruct with three turns.',
    'LLDS: abstracts of its versions differ (gains and lambda 0.1 or 0.2), and '
    'its text says .430 where its table has .440.',
    'The bonus of 0.001 on entropy is a default that the scripts leave on.',
  ),
  pods=('gpu:h100:1x1x8', 'tpu:v5p:2x2x2'),
  by_hand={
    source.name: _by_hand(source)
    for source in (TRAIN, *(one.data for one in EVALUATION.values()))
  },
)
