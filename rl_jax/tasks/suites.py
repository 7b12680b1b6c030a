r"""Test sets of published tables, read from files that lie on this machine.

  suite('math500', 'data/math500/test.jsonl', template=ChatTemplate(...))

Columns and counts are those of the JSONL files in
hkust-nlp/simpleRL-reason @ cf1c7858, examples/simplelr_math_eval/data; other
releases are read with other templates: question='{prompt}' and
answer='{reward_model.ground_truth}' for rows of verl. AIME 2025 has the columns
of AIME 2024. A second count is that of another release: AMC 23 has 83 rows in
sail-sg/understand-r1-zero @ dfca49dd. omni_math_rule is the part of OMNI-MATH
for graders of rules, omni_math_rule.jsonl of KbsdJames/omni-math-rule @
4793415e.

GPQA-Diamond and MMLU-Pro have the columns and counts of their dataset cards,
Idavidrein/gpqa (gpqa_diamond.csv, for which terms must be accepted) and
TIGER-Lab/MMLU-Pro; their files have not been opened. Options of GPQA are
shuffled, as its authors do, but in another order; those of MMLU-Pro stay. Both
are questions with options: sampled by default, and compared by log-likelihood
in an EvaluationSet with `options=True`. A response without an answer is wrong,
where the script of MMLU-Pro guesses.

ifeval has the rows of google-research/google-research, data/input_data.jsonl of
instruction_following_eval, which were counted in the copy of shisa-ai/M-IFEval
@ 206f08ff: 541 prompts with 834 instructions. Left out is the whole of
OMNI-MATH, whose answers are judged by a model.
"""

import dataclasses
from typing import Any

from rl_jax import checks
from rl_jax.tasks.base import Task
from rl_jax.tasks.choice_rows import ChoiceRows
from rl_jax.tasks.instruction_rows import InstructionRows
from rl_jax.tasks.question_answer import QuestionAnswer


@dataclasses.dataclass(frozen=True, kw_only=True)
class Suite:
  """The rows and columns of a test set; fields are those of QuestionAnswer.

  rows: the counts of known releases, the first by default.
  """

  rows: tuple[int, ...]
  question: str = '{problem}'
  answer: str = '{answer}'
  gold: str = 'whole'
  extract: str = 'boxed'
  verifier: str = 'math'


SUITES: dict[str, Suite] = {
  'aime24': Suite(rows=(30,)),
  'aime25': Suite(rows=(30,)),
  'amc23': Suite(rows=(40, 83)),
  'gsm8k': Suite(
    rows=(1319,),
    question='{question}',
    gold='hash',
    extract='last_number',
    verifier='decimal',
  ),
  'math500': Suite(rows=(500,)),
  'minerva': Suite(rows=(272,), answer='{solution}', gold='boxed'),
  'omni_math_rule': Suite(rows=(2821,)),
  'olympiadbench': Suite(
    rows=(675,), question='{question}', answer='{final_answer}'
  ),
}


# Test sets with options, as fields of ChoiceRows; `rows` is their count.
OPTIONS: dict[str, dict[str, Any]] = {
  'gpqa_diamond': dict(
    rows=198,
    question='{Question}',
    options=(
      'Correct Answer',
      *(f'Incorrect Answer {number}' for number in (1, 2, 3)),
    ),
    gold='',
    shuffle=True,
    heading='\n\n',
    listing='{letter}) {option}',
  ),
  'mmlu_pro': dict(
    rows=12_032,
    options='options',
    gold='answer_index',
    heading='\nOptions:\n',
    listing='{letter}. {option}',
    extract='answer_is',
  ),
}


_IFEVAL = 541


def suite(
  name: str, source: str, rows: int | None = None, **fields: Any
) -> Task:
  """The task whose test split is a suite, in a file, folder or tfds:NAME.

  rows: how many the source must have; None: as in SUITES and OPTIONS. fields:
  those of QuestionAnswer, of ChoiceRows or of InstructionRows that differ from
  the suite's, as `template`.

  Raises: ValueError for an unknown name. The task raises errors for a missing
    file, a missing column or another count when its rows are read, before
    anything is compiled.
  """
  if name in OPTIONS:
    found = dict(OPTIONS[name])
    known = found.pop('rows')
    kind: Any = ChoiceRows
  elif name in SUITES:
    found = checks.values(SUITES[name])
    known, *_ = found.pop('rows')
    kind = QuestionAnswer
  elif name == 'ifeval':
    found, known, kind = {}, _IFEVAL, InstructionRows
  else:
    names = ', '.join((*SUITES, *OPTIONS, 'ifeval'))
    raise ValueError(f'suite {name!r}: none of {names}')
  return kind(
    sources={'test': source},
    num_rows={'test': known if rows is None else rows},
    **{**found, **fields},
  )
