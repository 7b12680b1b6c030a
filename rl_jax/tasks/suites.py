r"""Test sets of published tables, read from files that lie on this machine.

  suite('math500', 'data/math500/test.jsonl', template=ChatTemplate(...))

Columns and counts are those of the JSONL files in
hkust-nlp/simpleRL-reason @ cf1c7858, examples/simplelr_math_eval/data; other
releases are read with other templates: question='{prompt}' and
answer='{reward_model.ground_truth}' for rows of verl. AIME 2025 has the columns
of AIME 2024. A second count is that of another release: AMC 23 has 83 rows in
sail-sg/understand-r1-zero @ dfca49dd. omni_math_rule is the part of OMNI-MATH
for graders of rules, omni_math_rule.jsonl of KbsdJames/omni-math-rule @
4793415e. Left out are the whole of OMNI-MATH, GPQA-D, MMLU-Pro and IFEval,
whose files or counts have not been verified.
"""

import dataclasses
from typing import Any

from rl_jax import checks
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


def suite(
  name: str, source: str, rows: int | None = None, **fields: Any
) -> QuestionAnswer:
  """The task whose test split is a suite, in a file, folder or tfds:NAME.

  rows: how many the source must have; None: as in SUITES. fields: those of
  QuestionAnswer that differ from the suite's, as `template`.

  Raises: ValueError for an unknown name. The task raises errors for a missing
    file, a missing column or another count when its rows are read, before
    anything is compiled.
  """
  if name not in SUITES:
    raise ValueError(f'suite {name!r}: none of {", ".join(SUITES)}')
  found = checks.values(SUITES[name])
  known = found.pop('rows')
  return QuestionAnswer(
    sources={'test': source},
    num_rows={'test': known[0] if rows is None else rows},
    **{**found, **fields},
  )
