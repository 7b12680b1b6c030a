"""BLEUBERI's reward: smoothed BLEU of a response against references."""

from collections import Counter
from collections.abc import Sequence
import math
import re

from rl_jax.tasks.base import Example

_ORDERS = (1, 2, 3, 4)
_ANSWER = re.compile(r'<answer>(.*?)</answer>', re.DOTALL)
# Of mteval-v13a, in this order, which knows no other entities.
_ENTITIES = {'&quot;': '"', '&amp;': '&', '&lt;': '<', '&gt;': '>'}
_SPACED = (
  (re.compile(r'([{-~\[-` -&(-+:-@/])'), r' \1 '),
  (re.compile(r'([^0-9])([.,])'), r'\1 \2 '),
  (re.compile(r'([.,])([^0-9])'), r' \1 \2'),
  (re.compile(r'([0-9])(-)'), r'\1 \2 '),
)


def bleuberi(example: Example, response: str) -> float:
  """BLEU of what is in <answer> tags, or of all, with the references.

  Those are the texts in example.meta['references'], or else the answer.
  A reward function: `--reward=rl_jax.tasks.bleu_reward:bleuberi=1`.
  Source: "BLEUBERI: BLEU is a surprisingly effective reward for instruction
  following"; lilakk/BLEUBERI training/utils.py, by a digest. Its selection of
  the prompts with the least BLEU is not part of it.
  """
  found = _ANSWER.findall(response)
  references = example.meta.get('references') or (example.answer,)
  return bleu(found[-1] if found else response, references)


def bleu(candidate: str, references: Sequence[str]) -> float:
  """BP (p_1 p_2 p_3 p_4)^(1/4); 0 for an empty candidate.

    p_n = (matches + 1) / (n-grams of the candidate + 1)
    BP = 1 if it is longer than the shortest reference, exp(1 - r / c) else

  Matches of an n-gram are at most its largest count in a reference. c, r:
  tokens of the candidate and of the shortest reference. As the metric `bleu`
  of the library evaluate with smoothing, which differs from sacrebleu's.
  """
  words = tokens(candidate)
  known = [tokens(text) for text in references]
  if not words:
    return 0.0
  total = 0.0
  for n in _ORDERS:
    own, most = _ngrams(words, n), Counter()
    for other in known:
      most |= _ngrams(other, n)
    total += math.log(((own & most).total() + 1) / (own.total() + 1))
  shortest = min(map(len, known))
  brevity = min(0.0, 1 - shortest / len(words))
  return math.exp(brevity + total / len(_ORDERS))


def tokens(text: str) -> list[str]:
  """Words and signs, by the rules of mteval-v13a."""
  text = text.replace('<skipped>', '').replace('-\n', '')
  for entity, sign in _ENTITIES.items():
    text = text.replace(entity, sign)
  text = f' {text} '.replace('\n', ' ')
  for pattern, spaced in _SPACED:
    text = pattern.sub(spaced, text)
  return text.split()


def _ngrams(words, n):
  return Counter(zip(*(words[i:] for i in range(n)), strict=False))
