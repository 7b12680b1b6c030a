"""Sets of problems that several recipes are measured on, as published."""

from typing import Any

from experiments.papers.recipe import ByHand, DataSource

_SIMPLERL = 'cf1c7858bfc145a27aa733e75d930d34f0d318a6'
_DISCO = 'bd2b078129347a87c10fbb64df12ed50dce59947'
BOXED = (
  " Let's think step by step and output the final answer within \\boxed{}."
)
# Of the files at these commits.
_SHA256 = {
  'aime24': 'af2b8bd2aa911b6333ad0df32f3ca05c7ae8ed10f1731f4372c8ae26990bf7ac',
  'amc23': '43707e1ca784602d8479de24ee8ce36609dbebc46dd152b0b12a46611aa898a4',
  'math500': '35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132',
  'minerva': '0e656b430d3a0a1dab6aa853f453ba3805e28e2cabe4fc72486a897cc09d8ba2',
  'olympiadbench': 'bb8c1e38a16ea9eacb77530315a674d8'
  '83f267fbff79183effc53681b4fcc416',
  'gsm8k_test': '9f098df7ff4522078d6ccec27a5c38a4'
  '54790fdb51131bedfaa0e490070d5394',
  'aime25': '4da989679ba8ec8a32b374fe8dd62705e618a6547464f348ac0bed29dfe2fb68',
  'amc83': 'f3d61378a1ff70592e08acc813fc300fd12b7bc0e7ede9420492dd13182b776c',
}
VERL = (
  'data_source',
  'prompt.0.content',
  'reward_model.ground_truth',
)


def _simplerl(name, folder, columns, rows, **fields) -> DataSource:
  return DataSource(
    name=name,
    repository='git:hkust-nlp/simpleRL-reason',
    revision=_SIMPLERL,
    path=f'examples/simplelr_math_eval/data/{folder}/test.jsonl',
    columns=columns,
    rows=rows,
    unique=rows,
    sha256=_SHA256[name],
    licence='MIT (the repository)',
    **fields,
  )


def verl_rows(
  name: str, repository: str, revision: str, path: str, **fields
) -> DataSource:
  """Rows in verl's schema, whose prompts end with the instruction to box."""
  given: dict[str, Any] = {'suffix': BOXED, 'columns': VERL} | fields
  return DataSource(
    name=name,
    repository=repository,
    revision=revision,
    path=path,
    question='{prompt.0.content}',
    answer='{reward_model.ground_truth}',
    **given,
  )


def _disco(name, file, rows, **fields) -> DataSource:
  return verl_rows(
    name,
    'git:Optimization-AI/DisCO',
    _DISCO,
    f'datasets/deepscaler/data/{file}.parquet',
    rows=rows,
    unique=rows,
    sha256=_SHA256[name],
    licence='MIT (the repository)',
    **fields,
  )


AIME24 = _simplerl(
  'aime24', 'aime24', ('problem', 'answer'), 30, question='{problem}'
)
AMC23 = _simplerl(
  'amc23', 'amc23', ('problem', 'answer'), 40, question='{problem}'
)
MATH500 = _simplerl(
  'math500', 'math500', ('problem', 'answer'), 500, question='{problem}'
)
MINERVA = _simplerl(
  'minerva',
  'minerva_math',
  ('problem', 'solution'),
  272,
  question='{problem}',
  answer='{solution}',
  gold='boxed',
)
OLYMPIAD = _simplerl(
  'olympiadbench',
  'olympiadbench',
  ('question', 'final_answer'),
  675,
  answer='{final_answer}',
)
GSM8K = _simplerl(
  'gsm8k_test', 'gsm8k', ('question', 'answer'), 1319, gold='hash'
)
AIME25 = _disco('aime25', 'aime25', 30)
AMC83 = _disco('amc83', 'amc', 83)
# Its answers are options; answerKey is one of their labels, A or 1.
ARC_CHALLENGE = DataSource(
  name='arc_challenge',
  repository='hf:allenai/ai2_arc',
  revision='main',
  path='ARC-Challenge/test-00000-of-00001.parquet',
  columns=('question', 'choices', 'choices.text', 'choices.label', 'answerKey'),
  rows=1172,
  question='',
  answer='',
  keep=('question', 'choices', 'answerKey'),
  repeats=True,
  licence='CC BY-SA 4.0',
)
ARC_FIELDS = {
  'options': 'choices.text',
  'labels': 'choices.label',
  'gold': 'answerKey',
}
ARC_BY_HAND = tuple(
  ByHand(
    row={
      'question': question,
      'choices': {'text': options, 'label': labels},
      'answerKey': key,
    }
  )
  for question, options, labels, key in (
    ('What is ice?', ['water', 'sand', 'wood', 'air'], list('ABCD'), 'A'),
    ('What do cows eat?', ['iron', 'grass', 'glass'], list('123'), '2'),
    ('What is hot?', ['snow', 'ice', 'fire', 'fog'], list('ABCD'), 'C'),
    ('What can fly?', ['a bird', 'a stone', 'a tree'], list('ABC'), 'A'),
  )
)
# Around each problem of DAPO-Math-17k.
DAPO_BEFORE = (
  'Solve the following math problem step by step. The last line of your '
  'response should be of the form Answer: $Answer (without quotes) where '
  '$Answer is the answer to the problem.\n\n'
)
DAPO_AFTER = '\n\nRemember to put your answer on its own line after "Answer:".'


def chatml(user: str, system: str = '') -> tuple[str, ...]:
  """The parts of a prompt in ChatML, as of Recipe.chat.

  system: '' where the paper has none; the template may then add its own.
  """
  first = (f'<|im_start|>system\n{system}<|im_end|>\n',) if system else ()
  turn = f'<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n'
  return (*first, turn)


# Files that no recipe trains on; `experiments.papers.agreement` reads them.
_ROLL = '8eb27cc2dc34c4d1310b169d9b86d339004d811a'
_VERL_DATA = '21b4c31fc709b5ce42e2eb87ae0db98bd70f153c'


def _roll(name, file, rows, **fields) -> DataSource:
  return DataSource(
    name=name,
    repository='git:alibaba/ROLL',
    revision=_ROLL,
    path=f'data/{file}.jsonl',
    columns=('prompt', 'ground_truth'),
    rows=rows,
    question='{prompt}',
    answer='{ground_truth}',
    licence='Apache-2.0 (the repository)',
    **fields,
  )


OTHERS = (
  DataSource(
    name='omni_math_rule',
    repository='git:KbsdJames/omni-math-rule',
    revision='4793415ef37d31c9cdb4e5b82dbe172f76f8cf08',
    path='omni_math_rule.jsonl',
    columns=('problem', 'answer'),
    rows=2821,
    unique=2816,
    sha256='d566d5b5a9865a04b507fdc4c0669cf0ff391748e13f190ecc925e78b584b172',
    question='{problem}',
  ),
  _roll('roll_deepmath', 'math_deepmath_deal', 4994),
  _roll('roll_benchmarks', 'math_benchmarks', 560),
  verl_rows(
    'verl_math_test',
    'git:eric-haibin-lin/verl-data',
    _VERL_DATA,
    'math/test.parquet',
    rows=5000,
    licence='MIT (hendrycks/math)',
  ),
  verl_rows(
    'verl_math_train',
    'git:eric-haibin-lin/verl-data',
    _VERL_DATA,
    'math/train.parquet',
    rows=7500,
    unreadable=2,
    licence='MIT (hendrycks/math)',
  ),
)
