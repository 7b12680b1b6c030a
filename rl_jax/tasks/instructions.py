r"""The 25 instructions of IFEval: does a text follow them?

Source: Zhou et al. 2023, arXiv:2311.07911, section 2.1 and table 1, and the
behaviour of the released checks (google-research/google-research,
instruction_following_eval). Names of instructions and of their arguments are
those of the released rows. What differs from the released checks:

  number_sentences        they split with a trained model (NLTK's punkt), here
                          by the rules of `sentences`
  capital_word_frequency  they split words with NLTK, here by `_CAPITALS`
  keywords and sections   they read the argument as a regular expression, here
                          it is text
  letter_frequency        lm-eval 0.4.13 replaces a sign, as '!', by a random
                          letter; here the sign is counted
  languages               detected by the package langdetect, as there, but
                          with a fixed seed; or by `scripts`, which is weaker
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import json
import re
from typing import Any

from rl_jax.tasks import scripts

LESS, LEAST = 'less than', 'at least'
LANGDETECT, SCRIPTS = 'langdetect', 'scripts'
ANSWERS = ('My answer is yes.', 'My answer is no.', 'My answer is maybe.')
_DIVIDER = re.compile(r'\s?\*\*\*\s?')
_STARRED = re.compile(r'\*([^\n*]*)\*'), re.compile(r'\*\*([^\n*]*)\*\*')
_TITLE = re.compile(r'<<[^\n]+>>')
_PLACE = re.compile(r'\[.*?\]')
_POSTSCRIPTS = {
  'P.S.': re.compile(r'p\.\s?s\.', re.IGNORECASE),
  'P.P.S': re.compile(r'p\.\s?p\.\s?s', re.IGNORECASE),
}
_FENCE = re.compile(r'```(?:json|Json|JSON)?')
# A word with its inner marks, as U.S.A. or X-RAY; a contraction is two.
_CAPITALS = re.compile(r"(?:[^\W_]\.){2,}|[\w$]+(?:[-/.&]\w+)*|'\w+")
# Dots after these end no sentence.
_SHORT = frozenset(
  'mr mrs ms dr prof st jr sr inc ltd co vs etc e.g i.e a.m p.m u.s'.split()
)
_ENDS = re.compile(r'[.?!]+["\')\]*_\u201d\u2019]*(?=\s)')


@dataclasses.dataclass(frozen=True)
class Check:
  """One instruction: the function that checks a text, and its arguments.

  follows: (text, **arguments) -> bool. detects: it has the further argument
  `detector`, one of LANGDETECT and SCRIPTS.
  """

  follows: Callable[..., bool]
  arguments: tuple[str, ...] = ()
  detects: bool = False


def compared(count: int, relation: str, limit: int) -> bool:
  """Returns whether a count is 'less than' or 'at least' the limit."""
  return count < limit if relation == LESS else count >= limit


def sentences(text: str) -> list[str]:
  """The sentences of a text: they end with marks before a space.

  A dot ends none after a title, a common abbreviation or an initial, and none
  before a lower-case letter if it is one of several.
  """
  found, start = [], 0
  for match in _ENDS.finditer(text):
    word = text[start : match.start()].rsplit(None, 1)
    last = word[-1].lstrip('("\'[*_').lower() if word else ''
    after = text[match.end() :].lstrip()[:1]
    if match[0].startswith('.'):
      initial = len(last) == 1 and last.isalpha() and last != 'i'
      if last in _SHORT or initial:
        continue
      if match[0].startswith('..') and after.islower():
        continue
    found.append(text[start : match.end()].strip())
    start = match.end()
  if rest := text[start:].strip():
    found.append(rest)
  return found


def language(text: str, detector: str) -> str | None:
  """The ISO 639-1 code of the language of a text; None: it has no letters.

  Raises: ImportError if the package of the detector is missing.
  """
  if detector == SCRIPTS:
    return scripts.language(text)
  detect = _langdetect()
  try:
    return detect.detect(text)
  except detect.LangDetectException:
    return None


@functools.cache
def _langdetect():
  try:
    import langdetect
  except ImportError as error:
    raise ImportError(
      "InstructionRows.detector='langdetect' needs the package langdetect (pip "
      "install 'rl_jax[ifeval]'); detector='scripts' needs none, but is weaker"
    ) from error
  langdetect.DetectorFactory.seed = 0
  return langdetect


def prepare(detector: str) -> None:
  """Imports what the detector needs.

  Raises: ImportError naming the package.
  """
  if detector == LANGDETECT:
    _langdetect()


def _is_language(text, wanted, detector):
  """A text without letters follows: nothing can be said of it."""
  return language(text, detector) in (wanted, None)


def _keywords(text, *, keywords):
  return all(word.lower() in text.lower() for word in keywords)


def _frequency(text, *, keyword, frequency, relation):
  count = text.lower().count(keyword.strip().lower())
  return compared(count, relation, frequency)


def _forbidden(text, *, forbidden_words):
  words = '|'.join(re.escape(word) for word in forbidden_words)
  return not re.search(rf'\b(?:{words})\b', text, re.IGNORECASE)


def _letters(text, *, letter, let_frequency, let_relation):
  count = text.lower().count(letter.strip().lower())
  return compared(count, let_relation, let_frequency)


def _response_language(text, *, detector, language):
  return _is_language(text, language, detector)


def _number_sentences(text, *, num_sentences, relation):
  return compared(len(sentences(text)), relation, num_sentences)


def _number_paragraphs(text, *, num_paragraphs):
  """Between '***'; an empty one may be the first or the last only."""
  parts = [bool(part.strip()) for part in _DIVIDER.split(text)]
  return all(parts[1:-1]) and sum(parts) == num_paragraphs


def _number_words(text, *, num_words, relation):
  return compared(len(re.findall(r'\w+', text)), relation, num_words)


def _first_word(text, *, num_paragraphs, nth_paragraph, first_word):
  """Paragraphs between empty lines; an empty one counts as a place."""
  parts = [part.strip() for part in text.split('\n\n')]
  count = sum(map(bool, parts))
  if count != num_paragraphs or not 1 <= nth_paragraph <= count:
    return False
  if not (paragraph := parts[nth_paragraph - 1]):
    return False
  word = paragraph.split()[0].lstrip("'").lstrip('"')
  return re.split(r'[.,?!\'"]', word)[0].lower() == first_word.lower()


def _placeholders(text, *, num_placeholders):
  return len(_PLACE.findall(text)) >= num_placeholders


def _postscript(text, *, postscript_marker):
  marker = postscript_marker.strip()
  if marker in _POSTSCRIPTS:
    return bool(_POSTSCRIPTS[marker].search(text))
  return marker.lower() in text.lower()


def _bullets(text, *, num_bullets):
  """Lines that begin with '-', or with one '*' and more."""
  lines = [line.lstrip() for line in text.split('\n')]
  return num_bullets == sum(
    line.startswith('-') or (line[:1] == '*' and line[1:2] not in ('*', ''))
    for line in lines
  )


def _constrained(text):
  return any(answer in text for answer in ANSWERS)


def _highlights(text, *, num_highlights):
  """Parts *like this*, and **like this**, that are not empty."""
  single, double = _STARRED
  found = [*single.findall(text), *double.findall(text)]
  return sum(bool(part.strip()) for part in found) >= num_highlights


def _sections(text, *, section_spliter, num_sections):
  """Marks as 'SECTION 1'."""
  mark = re.escape(section_spliter.strip())
  return len(re.findall(rf'{mark}\s?\d+', text)) >= num_sections


def _json(text):
  """The whole text, maybe between fences, is JSON."""
  text = text.strip()
  if fence := _FENCE.match(text):
    text = text[fence.end() :]
  try:
    json.loads(text.removesuffix('```'))
  except (ValueError, RecursionError):
    return False
  return True


def _title(text):
  found = _TITLE.findall(text)
  return any(title.strip('<>').strip() for title in found)


def _two_responses(text):
  """Two different ones, between '******'."""
  parts = [part.strip() for part in text.split('******')]
  given = [part for part in parts if part]
  return all(parts[1:-1]) and len(given) == 2 and given[0] != given[1]


def _repeats(text, *, prompt_to_repeat):
  start = prompt_to_repeat.strip().lower()
  return text.strip().lower().startswith(start)


def _ends(text, *, end_phrase):
  return text.strip().strip('"').lower().endswith(end_phrase.strip().lower())


def _capital_words(text, *, capital_frequency, capital_relation):
  count = sum(word.isupper() for word in _CAPITALS.findall(text))
  return compared(count, capital_relation, capital_frequency)


def _capitals(text, *, detector):
  return text.isupper() and _is_language(text, 'en', detector)


def _lowercase(text, *, detector):
  return text.islower() and _is_language(text, 'en', detector)


def _no_comma(text):
  return ',' not in text


def _quotation(text):
  text = text.strip()
  return len(text) > 1 and text[0] == text[-1] == '"'


CHECKS: Mapping[str, Check] = {
  'keywords:existence': Check(_keywords, ('keywords',)),
  'keywords:frequency': Check(_frequency, ('keyword', 'frequency', 'relation')),
  'keywords:forbidden_words': Check(_forbidden, ('forbidden_words',)),
  'keywords:letter_frequency': Check(
    _letters, ('letter', 'let_frequency', 'let_relation')
  ),
  'language:response_language': Check(_response_language, ('language',), True),
  'length_constraints:number_sentences': Check(
    _number_sentences, ('num_sentences', 'relation')
  ),
  'length_constraints:number_paragraphs': Check(
    _number_paragraphs, ('num_paragraphs',)
  ),
  'length_constraints:number_words': Check(
    _number_words, ('num_words', 'relation')
  ),
  'length_constraints:nth_paragraph_first_word': Check(
    _first_word, ('num_paragraphs', 'nth_paragraph', 'first_word')
  ),
  'detectable_content:number_placeholders': Check(
    _placeholders, ('num_placeholders',)
  ),
  'detectable_content:postscript': Check(_postscript, ('postscript_marker',)),
  'detectable_format:number_bullet_lists': Check(_bullets, ('num_bullets',)),
  'detectable_format:constrained_response': Check(_constrained),
  'detectable_format:number_highlighted_sections': Check(
    _highlights, ('num_highlights',)
  ),
  'detectable_format:multiple_sections': Check(
    _sections, ('section_spliter', 'num_sections')
  ),
  'detectable_format:json_format': Check(_json),
  'detectable_format:title': Check(_title),
  'combination:two_responses': Check(_two_responses),
  'combination:repeat_prompt': Check(_repeats, ('prompt_to_repeat',)),
  'startend:end_checker': Check(_ends, ('end_phrase',)),
  'startend:quotation': Check(_quotation),
  'change_case:capital_word_frequency': Check(
    _capital_words, ('capital_frequency', 'capital_relation')
  ),
  'change_case:english_capital': Check(_capitals, detects=True),
  'change_case:english_lowercase': Check(_lowercase, detects=True),
  'punctuation:no_comma': Check(_no_comma),
}
_TEXTS = ('keywords', 'forbidden_words')
_NUMBERS = re.compile(r'num_\w+|nth_paragraph|(?:let_|capital_)?frequency')


def problem(name: str, arguments: Mapping[str, Any]) -> str:
  """Returns what is wrong with an instruction of a row, or ''."""
  if name not in CHECKS:
    return f'{name!r} is not one of the instructions {sorted(CHECKS)}'
  wanted = CHECKS[name].arguments
  if {*arguments} != {*wanted}:
    return f'{name} has the arguments {sorted(arguments)}, expected {wanted}'
  for key, value in arguments.items():
    if key.endswith('relation'):
      good, expected = value in (LESS, LEAST), f'{LESS!r} or {LEAST!r}'
    elif key in _TEXTS:
      good = isinstance(value, (list, tuple)) and bool(value)
      good = good and all(isinstance(x, str) and x for x in value)
      expected = 'a list of texts'
    elif _NUMBERS.fullmatch(key):
      good = isinstance(value, int) and not isinstance(value, bool)
      good, expected = good and value >= 0, 'a number of 0 or more'
    else:
      good, expected = isinstance(value, str) and bool(value.strip()), 'a text'
    if not good:
      return f'{name} has {key} = {value!r}, expected {expected}'
  return ''


def follows(
  name: str, text: str, arguments: Mapping[str, Any], detector: str
) -> bool:
  """Returns whether a text follows an instruction; an empty one does not."""
  check = CHECKS[name]
  more = {'detector': detector} if check.detects else {}
  return bool(text.strip()) and check.follows(text, **arguments, **more)


def loose_forms(text: str) -> list[str]:
  """The text with and without its first line, last line and asterisks."""
  lines = text.split('\n')
  cut = (lines[1:], lines[:-1], lines[1:-1])
  forms = [text, *('\n'.join(part).strip() for part in cut)]
  return forms + [form.replace('*', '') for form in forms]
