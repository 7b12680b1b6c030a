"""The instructions of IFEval: right, wrong and borderline texts, by hand."""

import pytest

from rl_jax.tasks import instructions, scripts
from rl_jax.tasks.instructions import CHECKS, LEAST, LESS, SCRIPTS

RELATED = {'relation': LEAST}
# name, arguments, texts that follow, texts that do not.
CASES = [
  (
    'keywords:existence',
    {'keywords': ['mom', 'c++']},
    ['Mom knows C++.', 'moment c++'],
    ['mom', 'mo m c++'],
  ),
  (
    'keywords:frequency',
    {'keyword': 'war ', 'frequency': 2, 'relation': LEAST},
    ['War and warm', 'war, WAR, war'],
    ['war', ''],
  ),
  (
    'keywords:frequency',
    {'keyword': 'war', 'frequency': 2, 'relation': LESS},
    ['peace', 'war'],
    ['war war'],
  ),
  (
    'keywords:forbidden_words',
    {'forbidden_words': ['rock', 'issue']},
    ['rocks and tissues', 'a rock_'],
    ['Rock!', 'rock-hard', 'no issue'],
  ),
  (
    'keywords:letter_frequency',
    {'letter': 'T', 'let_frequency': 2, 'let_relation': LESS},
    ['one t', 'none'],
    ['Tt', 'that'],
  ),
  (
    'keywords:letter_frequency',
    {'letter': '#', 'let_frequency': 2, 'let_relation': LEAST},
    ['#a #b', '###'],
    ['#a'],
  ),
  (
    'language:response_language',
    {'language': 'de'},
    ['Das ist nicht der Hund, und ich bin es auch nicht.', '1 + 1'],
    ['This is the dog of my father.', 'это не собака'],
  ),
  (
    'language:response_language',
    {'language': 'hi'},
    ['यह घर है और वह भी घर है।'],
    ['ही गोष्ट आहे आणि ते आहेत', 'The house'],
  ),
  (
    'length_constraints:number_sentences',
    {'num_sentences': 3, **RELATED},
    [
      'One. Two! Three?',
      'Stop it.\nCome in. Eat up',
      'He said "no." She left. So?',
    ],
    ['One. Two.', 'Dr. No met Mr. T. Smith. Well', 'It is 3.5 of 4.2...'],
  ),
  (
    'length_constraints:number_paragraphs',
    {'num_paragraphs': 2},
    ['a\n***\nb', '***\na\n***\nb\n***', 'a***b'],
    ['a', 'a\n***\n***\nb', 'a\n***\nb\n***\nc', 'a\n\nb'],
  ),
  (
    'length_constraints:number_words',
    {'num_words': 3, **RELATED},
    ['one two three', "it's so", 'a-b-c'],
    ['one two', '... one, two!'],
  ),
  (
    'length_constraints:number_words',
    {'num_words': 3, 'relation': LESS},
    ['one two'],
    ['one two three'],
  ),
  (
    'length_constraints:nth_paragraph_first_word',
    {'num_paragraphs': 2, 'nth_paragraph': 2, 'first_word': 'Then'},
    ['a\n\nthen b', 'a\n\n"Then, b', "a\n\n'then' b", 'a\n\nThen'],
    [
      'then\n\nb',
      'a\n\nThenceforth',
      'a\n\nb\n\nthen',
      'then',
      'a\n\n\n\nthen',
    ],
  ),
  (
    'detectable_content:number_placeholders',
    {'num_placeholders': 2},
    ['[a] and [b]', '[][]'],
    ['[a]', '[a\nb] [c]', '(a) (b)'],
  ),
  (
    'detectable_content:postscript',
    {'postscript_marker': 'P.S.'},
    ['So.\nP.S. more', 'p. s. x', 'p.s.'],
    ['PS: more', 'P.P.S more'],
  ),
  (
    'detectable_content:postscript',
    {'postscript_marker': 'P.P.S'},
    ['P.P.S more', 'p. p. s x'],
    ['P.S. more'],
  ),
  (
    'detectable_format:number_bullet_lists',
    {'num_bullets': 2},
    ['* a\n* b', '- a\n  - b', '* a\n-b', 'so\n*a\n*b\n**c**'],
    ['* a', '* a\n* b\n* c', '1. a\n2. b', '* a\n---\n* b'],
  ),
  (
    'detectable_format:constrained_response',
    {},
    ['My answer is yes.', 'So: My answer is maybe. Sorry.'],
    ['My answer is yes', 'my answer is no.', 'Yes.'],
  ),
  (
    'detectable_format:number_highlighted_sections',
    {'num_highlights': 2},
    ['*a* and *b*', '**a** or **b**', '*a* **b**'],
    ['*a*', '** ** *a*', '*a\nb* *c*', '* a\n* b'],
  ),
  (
    'detectable_format:multiple_sections',
    {'section_spliter': 'Day', 'num_sections': 2},
    ['Day 1\na\nDay 2\nb', 'Day1 Day2', 'Day 1, Day 2, Day 3'],
    ['Day 1', 'day 1 day 2', 'Day one Day two'],
  ),
  (
    'detectable_format:json_format',
    {},
    ['{"a": 1}', '```json\n[1]\n```', '```\n{}```', ' 3 '],
    ['{a: 1}', 'So: {}', '```python\n{}\n```', '[' * 99999],
  ),
  (
    'detectable_format:title',
    {},
    ['<<A>>\nb', 'so <<a>> b', '<<< a >>>'],
    ['<A>', '<< >>', '<<a\nb>>', '<<>>'],
  ),
  (
    'combination:two_responses',
    {},
    ['a\n******\nb', '******a******b******'],
    ['a', 'a******a', 'a******b******c', 'a************b', 'a***b'],
  ),
  (
    'combination:repeat_prompt',
    {'prompt_to_repeat': 'Say it. '},
    ['say it. So.', '\nSay it.'],
    ['So: Say it.', 'Say'],
  ),
  (
    'startend:end_checker',
    {'end_phrase': 'Any more?'},
    ['So. Any more?', 'so "any more?" ', 'ANY MORE?'],
    ['Any more? No.', 'Any more'],
  ),
  (
    'startend:quotation',
    {},
    ['"a"', ' "a" b" \n', '""'],
    ['"', '"a', "'a'", '\u201ca\u201d'],
  ),
  (
    'change_case:capital_word_frequency',
    {'capital_frequency': 2, 'capital_relation': LEAST},
    ['A BIG dog', 'NO, YES!', 'U.S. and X-RAY'],
    ['A dog', 'Big Dog', 'ABc'],
  ),
  (
    'change_case:english_capital',
    {},
    ['THIS IS THE END.', '1 A'],
    ['This IS', 'DAS IST NICHT DER HUND UND ICH', '12'],
  ),
  (
    'change_case:english_lowercase',
    {},
    ['this is the end.'],
    ['This is', 'das ist nicht der hund und ich', '12'],
  ),
  ('punctuation:no_comma', {}, ['a; b'], ['a, b', ',']),
]


@pytest.mark.parametrize(('name', 'arguments', 'right', 'wrong'), CASES)
def test_by_hand(name, arguments, right, wrong):
  assert instructions.problem(name, arguments) == ''
  for text in right:
    assert instructions.follows(name, text, arguments, SCRIPTS), text
  for text in (*wrong, '', ' \n'):
    assert not instructions.follows(name, text, arguments, SCRIPTS), text


def test_every_instruction_has_a_case():
  """25, as in the paper."""
  assert {case[0] for case in CASES} == {*CHECKS} and len(CHECKS) == 25


def test_loose_forms():
  """First line, last line, both, and each without asterisks."""
  assert instructions.loose_forms('Sure:\n*a*\nBye') == [
    'Sure:\n*a*\nBye',
    '*a*\nBye',
    'Sure:\n*a*',
    '*a*',
    'Sure:\na\nBye',
    'a\nBye',
    'Sure:\na',
    'a',
  ]


@pytest.mark.parametrize(
  ('name', 'arguments', 'message'),
  [
    ('keywords:exist', {}, "'keywords:exist' is not one of the instructions"),
    ('startend:quotation', {'a': 1}, r"has the arguments \['a'\], expected"),
    ('keywords:existence', {}, r"expected \('keywords',\)"),
    ('keywords:existence', {'keywords': 'ab'}, "'ab', expected a list of te"),
    ('keywords:existence', {'keywords': []}, r'\[\], expected a list of texts'),
    (
      'length_constraints:number_words',
      {'num_words': '3', 'relation': LEAST},
      "num_words = '3', expected a number",
    ),
    (
      'length_constraints:number_words',
      {'num_words': 3, 'relation': 'more'},
      "relation = 'more', expected 'less than' or 'at least'",
    ),
    ('startend:end_checker', {'end_phrase': ' '}, "' ', expected a text"),
    (
      'length_constraints:number_paragraphs',
      {'num_paragraphs': True},
      'num_paragraphs = True',
    ),
  ],
)
def test_instructions_that_cannot_be(name, arguments, message):
  found = instructions.problem(name, arguments)
  assert found
  with pytest.raises(AssertionError, match=message):
    raise AssertionError(found)


@pytest.mark.parametrize(
  ('code', 'text'),
  [
    ('en', 'I am not sure that this is the way to go.'),
    ('fr', "Je ne sais pas que c'est pour les enfants et vous."),
    ('it', 'Non è una casa, è il giardino della signora.'),
    ('pt', 'Não é uma casa, mas um jardim do senhor.'),
    ('vi', 'Đây là một quyển sách và không có hình.'),
    ('sw', 'Hii ni nyumba ya mtoto na mama.'),
    ('fi', 'Hän ei ole tässä, mutta se on hyvä.'),
    ('ru', 'Это не дом, но он как дом.'),
    ('bg', 'Това е къща и не са хора.'),
    ('fa', 'این کتاب را از او گرفتم که است'),
    ('ur', 'یہ کتاب ہے اور وہ میں ہیں'),
    ('ar', 'هذا الكتاب في البيت'),
    ('ko', '이것은 책입니다'),
    ('th', 'นี่คือหนังสือ'),
    ('zh', '这是一本书'),
    ('ja', 'これは本です'),
    ('kn', 'ಇದು ಪುಸ್ತಕ'),
    ('pa', 'ਇਹ ਕਿਤਾਬ ਹੈ'),
    ('gu', 'આ પુસ્તક છે'),
    ('te', 'ఇది పుస్తకం'),
    ('ta', 'இது புத்தகம்'),
    ('bn', 'এটা একটা বই'),
    ('ne', 'यो किताब हो र यो मा छ'),
    (None, '12 + 3!'),
  ],
)
def test_languages_by_scripts_and_words(code, text):
  assert scripts.language(text) == code
