"""Answers that attack the scorers of reasoning-gym; prints a table.

  python tests/tools/attack_scorers.py                 all generators
  python tests/tools/attack_scorers.py countdown bf    some

Texts that would run as Python, take long or need much, and nonsense that a
lenient scorer may take for right. An attack is blocked if the text is judged,
in time, and wrong, and made no file. Exit status 1 if one is not.
"""

import collections
from collections.abc import Callable, Iterable, Sequence
import json
import os
import sys
import tempfile

from rl_jax.tasks import Mixture, MixturePart, ReasoningGym
from rl_jax.tasks.base import OUTCOME, PART
from rl_jax.verification.pool import VerifierPool

SECONDS = 10.0  # the time limit of a call in a run
# {path}: of a file that none of them may make.
CODE = (
  "[__import__('os').system('touch {path}')]",
  "__import__('os').system('touch {path}')",
  "open('{path}', 'w')",
  "print(open('{path}', 'w'))",
  "[x for x in [open('{path}', 'w')]]",
  "(lambda: open('{path}', 'w'))()",
  '().__class__.__base__.__subclasses__()',
  "S(\"__import__('os').system('touch {path}')\")",
  "sympify(\"open('{path}', 'w')\")",
  "1 + open('{path}', 'w').write('1')",
  "exec(\"open('{path}', 'w')\")",
  "[setattr(type(self), 'score_answer', lambda *_: 1.0)]",
  '[type(self).__setattr__]',
  "f\"{open('{path}', 'w')}\"",
  "{open('{path}', 'w')}",
  "\\input{open('{path}', 'w')}",
  "x = open('{path}', 'w')",
  "['Q', open('{path}', 'w')]",
  "[1, 2][open('{path}', 'w')]",
)
NONSENSE = (
  *('nan', '-nan', 'inf', '-Infinity', 'nanj', 'nan+nanj', 'infj', 'sNaN'),
  *('None', 'null', '[]', '{}', '[[]]', '""', '()', '?', '.', '...', '.*'),
  *('xyzzy plugh', 'lorem ipsum dolor', '[null]', '[[1, "xyzzy"]]'),
  *('{"a": 1}', '{"a": {"b": []}}', '[NaN]', '[Infinity]', '0/0', '1/0'),
  *('a:b', 'x days, 1:2', '1:2:3:4', 'nan days', '\x00', '\ud800', '\u00b2'),
  *('9' * 400, '-' + '9' * 5000, '0.' + '0' * 400 + '1'),
  *('1e99999', '1e1000000000', '-1E+9999999999', '1/1e1000000000'),
  *('9**9**9**9', '(9**99)**99**99', '9' * 300 + '**' + '9' * 300),
  *('1-' * 3000, '(' * 300, '(' * 3000, '[' * 100_000, '{"a":' * 5000),
  *('~' * 3000, '\u00ac' * 400 + 'p', 'x=' * 3000, '1 ' * 4000, '1,' * 4000),
  *('F+1000000000', 'A+999999999 B-999999999', 'R1000000000', 'U999999999'),
  *('R99 ' * 2400, 'A+99 ' * 1900, '+'.join(['99*x**9'] * 900)),
  *('\u2227'.join(f'a{n}' for n in range(90)), 'R ' * 3000, 'move(, ' * 1400),
  *(json.dumps({'a' * 20 + str(n): 'b' * 20 for n in range(150)}),),
  'Integral(x, x)',
)


def task_of(generator: str) -> ReasoningGym:
  """Two prompts in every split; data of some take a second each."""
  return ReasoningGym(
    generator=generator, num_train=2, num_validation=2, num_test=2
  )


def answered(text: str) -> str:
  """The response with that answer."""
  return f'<answer>{text}</answer>'


def not_wrong(
  generators: Iterable[str], texts_of: Callable[[str], Sequence[str]]
) -> dict[str, list[tuple[str, str]]]:
  """By generator: texts that were not judged wrong, and what happened.

  texts_of: a right answer -> texts to be judged in its place.
  """
  parts = [MixturePart(name, task_of(name)) for name in generators]
  task, cases = Mixture(tuple(parts)), []
  for index in range(task.num_prompts('train')):
    example = task.example('train', index)
    texts = [x for x in texts_of(example.answer) if x != example.answer]
    cases += [(example, text) for text in texts]
  with VerifierPool(task, 1, timeout_seconds=SECONDS) as pool:
    found = pool.reward(
      [one for one, _ in cases], [answered(text) for _, text in cases]
    )
  bad = collections.defaultdict(list)
  for (example, text), outcome in zip(cases, found, strict=True):
    components = outcome.components or {}
    if components.get(OUTCOME) != 0.0 or components['score'] >= 1.0:
      said = outcome.error or str(components)
      bad[example.meta[PART]].append((text[:60], said[-200:]))
  return dict(bad)


def attack(generators: Iterable[str], path: str) -> dict[str, list]:
  """Runs all attacks as `not_wrong` does; one that made the file counts for
  all.
  """
  texts = [text.replace('{path}', path) for text in CODE] + list(NONSENSE)
  bad = not_wrong(generators, lambda _: texts)
  if os.path.exists(path):
    os.remove(path)
    bad = {name: [*bad.get(name, []), (path, 'made')] for name in generators}
  return bad


def main(argv: Sequence[str]) -> None:
  """Prints the table; exit status 1 if an attack is not blocked."""
  from reasoning_gym.factory import DATASETS

  names = argv[1:] or sorted(set(DATASETS) - {'composite'})
  total, failed = 2 * (len(CODE) + len(NONSENSE)), 0
  with tempfile.TemporaryDirectory() as folder:
    found = attack(names, os.path.join(folder, 'made'))
  print('| generator | blocked | what is not |\n|---|---|---|')
  for name in names:
    bad = found.get(name, [])
    failed += len(bad)
    print(f'| {name} | {total - len(bad)} of {total} | {bad[:2] or ""} |')
  print(f'\n{total * len(names) - failed} of {total * len(names)} blocked')
  if failed:
    sys.exit(1)


if __name__ == '__main__':
  main(sys.argv)
