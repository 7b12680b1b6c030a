"""Table of what a calculator is worth before and after RL, as in README.md.

  python -m experiments.evaluate --checkpoint=runs/calculator_llm
    --num_samples=2 --out=tools/grpo_0.calculator.json
  python -m experiments.papers.word_problems.tools --outcomes=tools --update

A file of --outcomes is named POLICY_SEED.SET.json: policy untrained or that of
a method, set calculator or equation (without the tool), all of the same
problems.
Their lines are kept in tools.jsonl. Intervals are 95% by Student's t over
problems, seeds averaged.
"""

from experiments.flags import configuration
from experiments.papers.word_problems import table as table_lib

LINES = table_lib.FOLDER / 'tools.jsonl'
ALONE = 'equation'
OTHER = 'grpo'
HEADER = (
  'form, policy|seeds|greedy|by RL|by the tool|to GRPO|mean of samples|by RL|'
  'by the tool|to GRPO'
).split('|')


def table(lines: list[table_lib.Line]) -> list[list[str]]:
  """Header, and a row for each form and policy."""
  found: dict[tuple[str, str], list[table_lib.Line]] = {}
  for line in lines:
    found.setdefault((line['problems'], line['policy']), []).append(line)
  rows = [
    [f'{form}, {policy}', str(len(seeds)), *_columns(found, form, policy)]
    for (form, policy), seeds in found.items()
  ]
  return [[*HEADER], *rows]


def _columns(found, form, policy):
  seeds = found[form, policy]
  other = policy if policy == table_lib.BEFORE else OTHER
  bases = (form, table_lib.BEFORE), (ALONE, policy), (form, other)
  columns = []
  for measure, scale in (('greedy', 1), ('right', seeds[0]['samples'])):
    changes = [
      table_lib.change(seeds, found.get(base, seeds), measure, scale)
      for base in bases
    ]
    columns += [changes[0][0], *(text for _, text in changes)]
  return columns


def main(argv):
  """The table of tools.jsonl."""
  del argv
  table_lib.run('tools', LINES, table)


if __name__ == '__main__':
  configuration.run(main)
