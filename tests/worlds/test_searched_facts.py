"""Questions to a corpus, which a search of two words answers."""

import pytest

from rl_jax.tasks.environments import tool_makers
from rl_jax.tasks.environments.base import seed_of
from rl_jax.worlds import SearchedFacts


def begun(task, index):
  """(the episode, its question's words)."""
  example = task.example('train', index)
  episode = task.make(example)
  asked = episode.reset(seed_of(example)).observation
  assert asked.endswith('?')
  return episode, asked[:-1]


@pytest.fixture(name='shared_words')
def _shared_words(monkeypatch):
  """Ranked by the number of shared words, then by length: as BM25 here."""

  def ranked(texts, query, count):
    words = set(query.split())

    def score(n):
      return (len(words & set(texts[n].split())), -len(texts[n]))

    order = sorted(range(len(texts)), key=score, reverse=True)
    return [n for n in order if score(n)[0]][:count]

  monkeypatch.setattr(tool_makers, 'ranked', ranked)


def check_an_episode():
  task = SearchedFacts()
  for index in range(8):
    episode, asked = begun(task, index)
    field, subject = asked.split()
    told = episode.step(asked)
    assert told.observation.startswith(f' {subject} has {field} ')
    assert (told.rewards['found'], told.done, told.calls) == (1.0, False, 1)
    assert episode.step(asked).rewards['found'] == 0.0  # observed before
    value = told.observation.split()[-1]
    last = episode.step(f' {value}')
    assert last.done and last.rewards == {'outcome': 1.0, 'found': 0.0}
    wrong = next(x for x in task.values if x != value)
    assert begun(task, index)[0].step(wrong).rewards['outcome'] == 0.0


def test_the_question_finds_its_fact(shared_words):
  """Once; the value that it has is the answer."""
  check_an_episode()


def test_the_question_finds_its_fact_by_bm25():
  """The same with the package."""
  pytest.importorskip('bm25s', reason="needs the extra 'search'")
  check_an_episode()


def test_what_finds_no_fact(shared_words):
  """A question of others has no value; other words find nothing."""
  task = SearchedFacts()
  episode, _ = begun(task, 0)
  assert episode.step('asks').observation.split()[1] == 'asks'
  for words in ('', 'zzz'):
    assert episode.step(words).observation == ' nothing'
  words = {word.strip() for word in task.alphabet}
  for query in ('asks', 'has', *task.subjects):
    assert words.issuperset(episode.step(query).observation.split())


def test_values_are_drawn_for_each_episode(shared_words):
  """One question has several answers, so none is learned by heart."""
  task = SearchedFacts(num_subjects=2, num_fields=1)
  found = {}
  for index in range(40):
    episode, asked = begun(task, index)
    found.setdefault(asked, set()).add(episode.step(asked).observation)
  assert len(found) == 2 and all(len(x) > 3 for x in found.values())
