"""The language of a text by its script, and by frequent words of a few.

Weaker than a trained detector: languages that share a script are separated by
the words below only, and a text in any other language is taken for one of these
or for the first language of its script.
"""

import collections
import re
import unicodedata

# The first word of a letter's Unicode name -> languages, the first by default.
_OF_SCRIPTS = {
  'ARABIC': ('ar', 'fa', 'ur'),
  'BENGALI': ('bn',),
  'CJK': ('zh', 'ja'),
  'CYRILLIC': ('ru', 'bg'),
  'DEVANAGARI': ('hi', 'mr', 'ne'),
  'GREEK': ('el',),
  'GUJARATI': ('gu',),
  'GURMUKHI': ('pa',),
  'HANGUL': ('ko',),
  'HEBREW': ('he',),
  'HIRAGANA': ('ja',),
  'KANNADA': ('kn',),
  'KATAKANA': ('ja',),
  'LATIN': ('en', 'de', 'es', 'fi', 'fr', 'it', 'pt', 'sw', 'vi'),
  'MALAYALAM': ('ml',),
  'TAMIL': ('ta',),
  'TELUGU': ('te',),
  'THAI': ('th',),
}
_WORDS = {
  'ar': 'في من على إلى أن هذا التي الذي ما كان',
  'bg': 'и на за да се от е че съм са като',
  'de': 'der die das und ist nicht ein eine zu mit den ich auf für sie',
  'en': 'the of and to a in is that it you for are with on i this be as not',
  'es': 'el los las y que una por con para es del se lo no su',
  'fa': 'در به از که این را با است برای می',
  'fi': 'ja on ei se että ovat hän oli mutta joka kun myös olla',
  'fr': 'le les des et est une du que pas pour dans vous qui je il',
  'hi': 'है के की में और से को का यह हैं पर',
  'it': 'il di che è un per non sono della con gli una del si',
  'ja': 'の は に を が',
  'mr': 'आहे आणि च्या हे तो मध्ये आहेत या होते',
  'ne': 'छ र को मा हो छन् लागि यो गर्न',
  'pt': 'o os um uma e que não para com em do da é por mais',
  'ru': 'и в не на что он я с как это по но',
  'sw': 'na ya wa kwa ni za katika la cha kuwa hii au',
  'ur': 'ہے کے میں کی اور سے کو کا یہ ہیں',
  'vi': 'và của là có không một cho các được trong những',
}


def language(text: str) -> str | None:
  """The ISO 639-1 code of the language; None of a text without letters."""
  letters = collections.Counter(
    unicodedata.name(letter, '').split(' ', 1)[0].split('-')[0]
    for letter in text
    if letter.isalpha()
  )
  if not letters:
    return None
  if letters['HIRAGANA'] + letters['KATAKANA']:
    letters['HIRAGANA'] += letters.pop('CJK', 0)
  known = _OF_SCRIPTS.get(letters.most_common(1)[0][0], ('',))
  words = collections.Counter(
    re.split(r'[\s\d.,;:!?"()*#\u0964\u060c]+', text.lower())
  )

  def frequent(code):
    return sum(words[word] for word in _WORDS.get(code, '').split())

  return max(known, key=frequent)  # the first of equal ones
