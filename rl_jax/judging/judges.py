"""Judges of a run: responses go to them as text, between decoding and rewards.

Their scores are reward components of the host, as those of the task are: group
filters, selectors and logs know them.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.decoding.engine import Engine
from rl_jax.decoding.stop import Stop
from rl_jax.judging import judge_questions
from rl_jax.judging.rubric import Reviser, Rubric
from rl_jax.models import heads, transformer
from rl_jax.models.judge_source import PAIRS, Judge, Said
from rl_jax.pieces.ops.rivals import rivals
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.runtime.stateful import Stateful
from rl_jax.verification.pool import Outcome

UNREAD = 'rollout/unread_judgements'  # in metrics
# What a reader is given: token ids of questions.
Read = Callable[[Any, Sequence[list[int]]], list]


@dataclasses.dataclass(frozen=True)
class Asked:
  """A judge of a run; built by runs.judges.

  params: of its model, None: those that sample. encode: a question to token
  ids. read: (params, token ids of questions) -> their answers.
  """

  source: Judge
  params: Any
  encode: Callable[[judge_questions.Question], list[int]]
  read: Read
  reviser: Reviser | None = None


class Judges(Stateful):
  """weights: what each adds to the reward of the task, by name.

  rubrics: by name; their `state` is JSON-able, and checkpoints hold it.
  beats_NGG: of the last call, how often sample i beats sample j of its prompt,
  by the first judge of pairs that has a weight; None without one.
  """

  name: ClassVar[str] = 'judges'

  def __init__(self, judges: Sequence[Asked] = ()):
    self._judges, self._policy = tuple(judges), None
    self.beats_NGG: np.ndarray | None = None
    self.weights: Mapping[str, float] = {
      one.source.name: one.source.weight for one in judges
    }
    self.rubrics = {
      one.source.name: Rubric(one.source.name, one.source.rubric, one.reviser)
      for one in judges
    }
    self._unread: list[float] = []
    self._unread_by_group: list[list[float]] = []

  @property
  def compares(self) -> list[str]:
    """Names of the judges whose questions are about several responses."""
    return [x.source.name for x in self._judges if x.source.compares]

  def begin(self, params: Any) -> None:
    """Begins an iteration; params: for judges that are the policy."""
    if not self._judges:
      return  # nothing that would keep the weights
    self._policy = params
    for rubric in self.rubrics.values():
      rubric.begin(params)

  def of_evaluation(self, params: Any) -> 'Judges':
    """Judges with the current rubrics, fixed; params: those that sample."""
    fixed = []
    for one in self._judges:
      text = self.rubrics[one.source.name].text
      source = dataclasses.replace(one.source, rubric=text)
      fixed.append(dataclasses.replace(one, source=source, reviser=None))
    found = Judges(fixed)
    found.begin(params)
    return found

  @property
  def state(self) -> dict[str, Any]:
    """The states of the rubrics, by name."""
    return {name: rubric.state for name, rubric in self.rubrics.items()}

  def host(self) -> dict[str, Any]:
    """See Stateful."""
    return {'judges': self.state}

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """See Stateful."""
    del arrays
    for name, state in host.get('judges', {}).items():
      self.rubrics[name].state = state

  def add(
    self,
    outcomes: Sequence[Outcome],
    examples: Sequence[Any],
    texts: Sequence[Said],
    group_size: int,
    single: bool = False,
  ) -> list[Outcome]:
    """The outcomes with a component for each judge; those without stay so.

    texts: of this process' own rows, or the turns of episodes. A row that a
    question is too long for has no components any more, with the reason.
    single: without the judges that compare responses, see `compare`.
    """
    of = [x for x in self._judges if not (single and x.source.compares)]
    return self._add(of, outcomes, examples, texts, group_size)

  def compare(
    self,
    outcomes: Sequence[Outcome],
    examples: Sequence[Any],
    texts: Sequence[Said],
    group_size: int,
    kind: str,
  ) -> list[Outcome]:
    """Adds, like `add`, the verdicts of the judges that compare responses.

    Groups hold rows of policy and opponent; kind: the pairs that a judge of
    pairs is asked about, see ops.rivals.
    """
    of = [one for one in self._judges if one.source.compares]
    rival_GG = rivals(kind, group_size)
    return self._add(of, outcomes, examples, texts, group_size, rival_GG)

  def metrics(self) -> dict[str, float]:
    """The share of unreadable answers in the last call, and rubric versions."""
    if not self._unread:
      return {}
    versions = [state['version'] for state in self.state.values()]
    return {
      UNREAD: float(np.mean(self._unread)),
      'rollout/rubric_version': float(max(versions)),
    }

  @property
  def unread_N(self) -> np.ndarray:
    """The share of unreadable answers of each group in the last call."""
    return np.mean(self._unread_by_group, axis=0)

  def _add(self, judges, outcomes, examples, texts, group_size, rival_GG=None):
    self._unread, self._unread_by_group, self.beats_NGG = [], [], None
    if not judges:
      return list(outcomes)
    parts = processes.gather([texts[row] for row in range(len(texts))])
    every = [text for part in parts for text in part]
    due = {row for row, one in enumerate(outcomes) if one.components}
    groups, found = _Groups(examples, due, group_size, rival_GG), list(outcomes)
    for judge in judges:
      found = self._judged(judge, found, every, groups)
    return found

  def _judged(self, judge, outcomes, texts, groups):
    """Outcomes with the numbers of one judge, asked once for all prompts."""
    source, rubric = judge.source, self.rubrics[judge.source.name]
    texts, judged = [source.observed(said) for said in texts], []
    asked = groups.questions(source, texts, rubric.text)
    ids = [judge.encode(question) for group in asked for question in group]
    long = [i for i, x in enumerate(ids) if len(x) > source.max_tokens]
    params = self._policy if judge.params is None else judge.params
    answers = judge.read(params, [x[: source.max_tokens] for x in ids])
    place, found, beats = 0, list(outcomes), []
    unread: list[int] = []  # by group
    G = groups.size
    for n, (example, group) in enumerate(
      zip(groups.examples, asked, strict=True)
    ):
      own = range(place, place + len(group))
      said = answers[own.start : own.stop]
      is_judged = judge_questions.judges(source, example)
      score_G, bad = np.zeros(G), 0
      if is_judged:
        score_G, bad = judge_questions.scores(source, group, said, G)
      if source.form == PAIRS:
        beats.append(judge_questions.preferences(source, group, said, G))
      cut = {r for i in long if i in own for r in group[i - place].rows}
      for g in range(G):
        row = n * G + g
        if found[row].components:
          if is_judged:
            judged.append((example.prompt, texts[row], score_G[g]))
          found[row] = _with_score(found[row], source, score_G[g], g in cut)
      place = own.stop
      unread.append(bad)
    if beats and source.weight and self.beats_NGG is None:
      self.beats_NGG = np.stack(beats).astype(np.float32)
    rubric.see(judged)
    self._unread.append(sum(unread) / max(1, len(ids)))
    self._unread_by_group.append(
      [n / max(1, len(group)) for n, group in zip(unread, asked, strict=True)]
    )
    return found


@dataclasses.dataclass(frozen=True)
class _Groups:
  """due: rows that are judged. rival_GG: see judge_questions.questions."""

  examples: Sequence[Any]
  due: set[int]
  size: int
  rival_GG: np.ndarray | None

  def questions(self, source, texts, rubric):
    """The questions of one judge, a list for each prompt."""
    asked = []
    for n, example in enumerate(self.examples):
      rows = range(n * self.size, (n + 1) * self.size)
      shown = {row - rows.start: texts[row] for row in rows if row in self.due}
      asked.append(
        judge_questions.questions(source, example, shown, rubric, self.rival_GG)
      )
    return asked


def _with_score(outcome, source, score, cut):
  if cut or not np.isfinite(score):
    what = f'more than {source.max_tokens} tokens' if cut else 'a score of NaN'
    return Outcome(None, 'invalid', f'judge {source.name!r}: {what}')
  components = {**outcome.components, source.name: float(score)}
  return dataclasses.replace(outcome, components=components)


NO_JUDGES = Judges()


@dataclasses.dataclass(frozen=True)
class Reader:
  """Reads probabilities of labels, values or answers after questions.

  rows: questions a call. engine, stop: for answers in text. width: tokens that
  questions are padded to; 0: a power of two that holds the longest of a call.
  """

  model: transformer.ModelConfig
  mesh: jax.sharding.Mesh
  pad_id: int
  rows: int
  label_ids: tuple[int, ...] = ()
  values: tuple[float, ...] = ()
  engine: Engine | None = None
  stop: Stop | None = None
  key: Any = None
  width: int = 0

  def __call__(self, params: Any, questions: Sequence[list[int]]) -> list:
    """Numbers, or texts with an engine, one a question."""
    answers = []
    for start in range(0, len(questions), self.rows):
      own = questions[start : start + self.rows]
      arrays = self._arrays(own)
      read = self._texts if self.engine is not None else self._numbers
      answers += read(params, *arrays)[: len(own)]
    return answers

  def _arrays(self, questions):
    """Left-padded; of few widths, as each is compiled."""
    longest = max(map(len, questions))
    width = self.width or max(8, 1 << (longest - 1).bit_length())
    shape = self.rows, width
    prompt = np.full(shape, self.pad_id, np.int32)
    mask = np.zeros(shape, np.float32)
    mask[:, -1] = 1.0  # of rows that fill the call, too
    for row, ids in enumerate(questions):
      prompt[row, shape[1] - len(ids) :] = ids
      mask[row, shape[1] - len(ids) :] = 1.0
    return prompt, mask

  def _numbers(self, params, prompt, mask):
    arrays = processes.put((prompt, mask), mesh_lib.rows(self.mesh))
    return processes.read(self._jitted(params, *arrays)).tolist()

  @functools.cached_property
  def _jitted(self):
    read = functools.partial(
      numbers_behind, self.model, self.label_ids, self.values
    )
    return jax.jit(read, out_shardings=mesh_lib.replicated(self.mesh))

  def _texts(self, params, prompt, mask):
    assert self.engine is not None and self.stop is not None
    text = self.stop.text
    ids = np.arange(self.rows, dtype=np.int32)
    traj = self.engine.start(prompt, mask, ids, 0, 0)
    traj = self.engine.generate(params, traj=traj, key=self.key)
    tokens, sizes = processes.read((traj.response_BT, traj.length_B))
    pairs = zip(tokens, sizes, strict=True)
    return [text(row[:size]) for row, size in pairs]


def numbers_behind(
  model: transformer.ModelConfig,
  label_ids: tuple[int, ...],
  values: tuple[float, ...],
  params: Any,
  prompt_NP: jax.Array,
  mask_NP: jax.Array,
) -> jax.Array:
  """sum_k p_k values_k of the next token, or the value head, [N].

  p = softmax of the logits of label_ids; without any the value after the last
  token of the prompt.
  """
  N = len(prompt_NP)
  next_N1 = jnp.zeros((N, 1), jnp.int32)
  hidden_N1D = transformer.forward(
    params, model, prompt_NP, mask_NP, next_N1, jnp.ones((N, 1))
  )
  if not label_ids:
    return heads.values(params, hidden_N1D[:, 0])
  logits_NV = heads.logits(params, model, hidden_N1D[:, 0])
  p_NK = jax.nn.softmax(logits_NV[:, np.array(label_ids)], axis=-1)
  return p_NK @ np.array(values, np.float32)
