"""Words: docstrings, comments, messages and pages use the terms of the field.

Fifteen patterns that made this repository hard to read stay out. A finding
names the file, the line, the pattern and what to write instead.
"""

import ast
import pathlib
import re
from typing import NamedTuple

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ('rl_jax', 'configs', 'experiments', 'docs', 'tests')
PAGES = ('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'BUILD_NOTES.md')
# Generated from other files, or the list of patterns itself.
EXCLUDED = ('tests/test_prose.py',)
EXCLUDED_FOLDERS = {'generated', '_build', 'data', '__pycache__'}


class Pattern(NamedTuple):
  """The words that stay out of texts, and those to write instead."""

  name: str
  regex: str
  instead: str


# In all texts. Names in backticks are names: they are removed before.
WORDS = (
  Pattern(
    'behind',
    r'\bbehind\b(?! (?:a|the) (?:proxy|firewall|door|wall)\b)',
    '"after", "late" or "below"',
  ),
  Pattern('alone', r'(?<!/)\balone\b', '"only", "by itself", "separately"'),
  Pattern(
    'told',
    r'(?<!/)\b(?:un)?told\b(?!:)',
    '"given", "observed", "informed"; not told apart: "not separated"',
  ),
  Pattern('begun', r'\bbegun\b(?!:)', '"started", "existing", "partial"'),
  Pattern(
    'of its own',
    r"\bof (?:its|his|her|their|our|your|one's) own\b(?! \w)",
    '"its own X", "a separate X"',
  ),
  Pattern(
    'is no',
    r'(?<!there\s)(?<!here\s)\b(?:is|are|was|were) no (?!longer\b|more\b|less\b'
    r'|better\b|worse\b|larger\b|higher\b|slower\b|faster\b|other\b|such\b)',
    '"is not a"',
  ),
  Pattern(
    'goes on',
    r'\b(?:go|goes|going|went) on\b(?! to\b)',
    '"continues"',
  ),
  Pattern('anew', r'\b(?:anew|afresh)\b', '"again"'),
  Pattern(
    'stands, lays, hangs',
    r'\b(?:stand|stands|stood)\b(?!-in| (?:for|in for)\b)|\b(?:lay|lays|laid)\b'
    r'|\bhangs? on\b',
    '"is", "follows", "puts", "depends on"',
  ),
  Pattern('looked at', r'\blooked at\b', '"read", "examined", "compared"'),
  Pattern('by hand of', r'\bby hand of\b', '"by"'),
  Pattern(
    'whole',
    r'\bwhole (?:weights|parameters)\b|\bwhole (?:in|on) (?:each|every|all)\b',
    '"replicated"',
  ),
)
# In docstrings.
STARTS = (
  Pattern(
    'no subject',
    r'(?:Of|That of|Those of|As)\b',
    'a sentence with a subject: "The mean of ...", "Returns ..."',
  ),
  Pattern('empty', r'(?:None|See above)\.$', 'what it returns'),
)
REPEATS = Pattern(
  'repeats its name', '', 'no docstring, or what the name does not say'
)
_ARTICLES = {'the', 'a', 'an', 'of', 'this', 'that', 'it', 'its', 'one'}
# One word or a path: a key, a flag, the name of a file.
_NAME = re.compile(r'[\w./:@=,{}%+-]*')
# What a table of results holds is written by a program.
_TABLE = re.compile(r'<!-- table.*?: begin -->.*?<!-- table.*?: end -->', re.S)
_CODE = re.compile(r'```.*?```|`[^`]*`|\{[^{}\n]*\}', re.S)
_LEXEMES = re.compile(
  r'(?P<comment>\#[^\n]*)'
  r'|(?P<triple>[rRbBuUfF]{0,2}(?:"""(?:[^"\\]|\\.|"(?!""))*"""'
  r"|'''(?:[^'\\]|\\.|'(?!''))*'''))"
  r'|(?P<text>[rRbBuUfF]{0,2}(?:"(?:\\.|[^"\\\n])*"'
  r"|'(?:\\.|[^'\\\n])*'))"
  r'|^[ ]*(?:async )?(?:def|class) (?P<name>\w+)',
  re.S | re.M,
)
_WORDS = [(p, re.compile(p.regex.replace(' ', r'\s+'), re.I)) for p in WORDS]
_ANY = re.compile('|'.join(regex.pattern for _, regex in _WORDS), re.I)


# What is not prose of ours: texts that a policy reads, which runs depend on.
ALLOWED: dict[str, tuple[str, ...]] = {
  'rl_jax/tasks/environments/aviary.py': ('arguments are no object',),
  'rl_jax/tasks/environments/text_world.py': (
    'That is no command.',
    '| room| box| stand| door|',
  ),
  'rl_jax/tasks/environments/tool_calls.py': (
    'write its name and arguments alone',
    'the call is no object with a name',
  ),
  'rl_jax/tasks/environments/tool_functions.py': ('is no {kind}',),
  'tests/tasks/environments/test_packages.py': (
    'That is no command.',
    'arguments are no object',
    "a = 'x' is no integer",
  ),
  'tests/tasks/environments/test_tools.py': (
    'the call is no object with a name',
    'write its name and arguments alone',
    'expression = 12 is no string',
  ),
  'tests/tasks/test_refinements.py': ('Refinements.task: Begun',),
  'tests/tools/attack_programs.py': (
    'closing the pipe and going on',
    'judge: write values of its own',
  ),
}


class Text(NamedTuple):
  """A docstring, comment, message or page, and where it begins."""

  kind: str
  name: str  # the function or class of a docstring
  text: str
  line: int


def _words(text):
  """The words of a name or a sentence, without articles and endings."""
  split = re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', text).lower()
  words = re.findall(r'[a-z]+', split)
  return {re.sub(r'(?:s|es|ing|ed)$', '', w) for w in words} - _ARTICLES


def _texts(source):
  """The docstrings, comments and messages of a Python file.

  Strings in triple quotes that are not docstrings are code or templates.
  """
  name, line, place, comments = '', 1, 0, []
  for match in _LEXEMES.finditer(source):
    line += source.count('\n', place, match.start())
    place = match.start()
    kind, text = match.lastgroup, match[0]
    if kind == 'name':
      name = match['name']
    elif kind == 'comment':
      column = place - source.rfind('\n', 0, place)
      if comments and comments[-1][:2] == (line - 1, column):
        first = comments[-1][2]
        text = f'{first.text}\n{text[1:]}'
        comments[-1] = (line, column, first._replace(text=text))
      else:
        comments.append((line, column, Text('comment', '', text[1:], line)))
    elif kind == 'text' and not _NAME.fullmatch(text.strip('rbfu\'"')):
      yield Text('message', '', text, line)
    elif kind == 'triple':
      before = source[max(0, place - 100) : place]
      if before.rstrip()[-1:] in ('', ':'):
        yield Text('docstring', name, text.strip('rbu"'), line)
  yield from (comment for _, _, comment in comments)


def _hidden(match):
  """Blanks of as many lines."""
  return re.sub(r'[^\n]', '_', match[0])


def _found(one):
  """(line, pattern) of everything in a text that stays out."""
  if _ANY.search(one.text):
    text = _CODE.sub(_hidden, one.text)
    for pattern, regex in _WORDS:
      for match in regex.finditer(text):
        yield one.line + text.count('\n', 0, match.start()), pattern
  if one.kind == 'docstring':
    text = one.text.strip()
    for pattern in STARTS:
      if re.match(pattern.regex, text):
        yield one.line, pattern
    plain = one.name and not re.search(r'[\d=]', text)
    if plain and _words(text) <= _words(one.name):
      yield one.line, REPEATS


def _findings(path):
  """'file:line: pattern: write ...' of a file."""
  source = path.read_text()
  place = path.relative_to(ROOT).as_posix()
  for phrase in ALLOWED.get(place, ()):
    assert phrase in source, f'{place} has no {phrase!r} that would be allowed'
    source = source.replace(phrase, '_' * len(phrase))
  if path.suffix == '.md':
    texts = [Text('page', '', _TABLE.sub(_hidden, source), 1)]
  else:
    texts = _texts(source)
  return [
    f'{place}:{line}: {pattern.name}: write {pattern.instead}'
    for text in texts
    for line, pattern in _found(text)
  ]


def _files():
  """The files whose words are ours."""
  for folder in FOLDERS:
    for path in sorted((ROOT / folder).rglob('*')):
      if path.suffix in ('.py', '.md') and not EXCLUDED_FOLDERS & {*path.parts}:
        yield path
  yield from (ROOT / page for page in PAGES)


def test_words_of_the_field():
  """No finding in the files whose words have been revised."""
  found = [
    line
    for path in _files()
    if path.relative_to(ROOT).as_posix() not in EXCLUDED
    for line in _findings(path)
  ]
  assert not found, '\n' + '\n'.join(found)


def test_docstrings_of_sources_have_a_verb():
  """A clause such as "Whether it fits." is not a sentence, in tests too."""
  clause = re.compile(r'(?:What|Whether|Where|Which|Who|How)\b')
  found = []
  for folder in ('rl_jax', 'experiments', 'configs', 'tests'):
    for path in sorted((ROOT / folder).rglob('*.py')):
      for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
          continue
        text = ast.get_docstring(node) or ''
        if clause.match(text):
          found.append(f'{path.relative_to(ROOT)}: {text.splitlines()[0]}')
  assert not found, 'write "Returns whether ..." or a noun:\n' + '\n'.join(
    found
  )


@pytest.mark.parametrize(
  'text, name',
  [
    ('The token behind the end.', 'behind'),
    ('Of the run.', 'no subject'),
    ('That of a row.', 'no subject'),
    ('As of other selectors.', 'no subject'),
    ('A letter that is no\naction.', 'is no'),
    ('A critic of its own, trained before.', 'of its own'),
    ('The rewards of f.', 'repeats its name'),
  ],
)
def test_patterns_are_found(text, name):
  """Also over the end of a line."""
  source = f'def reward_f():\n  """{text}"""\n'
  assert [p.name for one in _texts(source) for _, p in _found(one)] == [name]


@pytest.mark.parametrize(
  'text',
  [
    'A server behind a proxy.',
    'There is no such file, and it is no longer read.',
    'The value of its own token, `told`.',
    'A mark stands for a space.',
  ],
)
def test_true_uses_are_not_found(text):
  """Each pattern has exceptions."""
  source = f'def g():\n  """{text}"""\n'
  assert not [p.name for one in _texts(source) for _, p in _found(one)]


def test_comments_and_messages_are_read():
  """A comment of two lines is one text; keys and names are not read."""
  source = "x = {'told': 'it is no {row}'}  # it is\n# no word\n"
  source += "  # it goes\n  # on\ny = f'{x} stands'\n"
  found = [(one.kind, p.name) for one in _texts(source) for _, p in _found(one)]
  assert sorted(found) == [
    ('comment', 'goes on'),
    ('message', 'is no'),
    ('message', 'stands, lays, hangs'),
  ]
