"""One rollout batch: draw prompts, generate, score, verify, keep groups.

With a group filter (dynamic sampling) rounds are repeated until enough groups
are kept or `rollout.max_rounds` is reached; what is then missing is filled
with dropped groups of weight 0, and counted. A `Method.rollout` piece adds
its own rounds: hinted rows, continuations from the middle of a response.
"""

from collections.abc import Callable
import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from rl_jax.checks import checked, chosen, ranged
from rl_jax.decoding import rounding
from rl_jax.decoding.drafts.settings import Drafts
from rl_jax.decoding.engine import Engine, EngineConfig
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes.turns import FIXED, ORDERS, TurnConfig
from rl_jax.judging import compared
from rl_jax.judging.judges import NO_JUDGES, Judges
from rl_jax.judging.learned import (
  NO_LEARNED,
  LearnedRewards,
  with_learned,
)
from rl_jax.judging.verifiers import token_inputs
from rl_jax.method import Method
from rl_jax.pieces.ops.rivals import BEATS
from rl_jax.pieces.roles import CreditContext, RolloutWrapper
from rl_jax.rollouts import responses
from rl_jax.rollouts.host_selector import PromptSelector
from rl_jax.rollouts.join import laid_end_to_end, take_from_rounds
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.rollouts.rounds import (
  Collected,
  Draw,
  Round,
  joined,
  reward_arrays,
  total_rewards,
)
from rl_jax.rollouts.sampler import Sampler
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.runtime.repeated_warnings import RepeatedWarnings
from rl_jax.tasks import base
from rl_jax.types import GroupSummary, Trajectories


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class RolloutConfig:
  """The number and the length of the rows that an iteration draws.

  turns: limits of episodes, for tasks that are environments. A row of them
    continues as soon as its own call is answered (episodes.slot_runner).
  show_stop: a text of `stop` that has ended a response is a part of what
    verifiers, judges and environments read, as '</answer>' for answers between
    tags. Control tokens and end tokens are not.
  round_prompts: prompts of a round of dynamic sampling (method.group_filter),
    num_prompts at least: rounds end when num_prompts groups are kept, and the
    first of these are trained on. None: num_prompts.
  slots: rows that are decoded at a time, on all devices; a row that ends makes
    room for the next, and so does one of an episode whose turn ends.
    Memory and speed only, never mathematics. None: all rows.
  cache_tokens: of responses whose keys and values fit on all devices; the slots
    share them. Memory and speed only. None: each slot has room for a whole one.
    The rows of each batch of episodes that is played share them, and a row has
    room for a whole response. None: all rows have.
  host_cache_tokens: of episodes: tokens in the memory of the host, to which the
    keys and values of rows move that wait for an answer while others need their
    room (decoding.cache_places). Copies keep their bits. None: such rows keep
    their room, and the others wait for their end.
  window_tokens: that a row gets in an iteration at most; it continues in the
    next, see rollouts.windows. None: responses are written in one.
  recorded_prompts: of num_prompts, those whose rows are the responses that the
  task's data hold (tasks.base.RecordedResponse) instead of samples.
  sampler_weights: 'bfloat16', 'int8' or 'int4' round the weights that sample,
    so that sampler and trainer disagree as those of two engines do;
    guards.max_logp_gap may then end a run.
  parts: of its prompts, in which a rollout is sampled; one is verified while
    the next one is decoded. Memory and speed only, as slots.
  staleness: the lag of the weights that sample, in iterations, see
    rollouts.lagged; each costs a copy of the trained weights. Of episodes it
    is by how many updates they start early, while those of the updates before
    are still played; then each costs caches, too. Where batches of episodes
    must be whole (turns.what_waits) it is only the lag. With
    mesh.rollout_devices some devices sample while the others train.
  order: which groups an update trains if episodes are played across updates.
    'fixed': the first ones in the order in which they started. 'arrival': those
    that are complete first, and every one that started `staleness` updates ago:
    nothing is dropped, but time decides which groups are trained together
    (episodes.schedule, episodes.closings).
  speculative: drafts of several tokens, verified in one forward pass: the same
    tokens, sooner where drafts are right, see decoding.drafts.speculative; of a
    draft model tokens of the same distribution, unless its coupling is
    'uniform'.
    None: none. Evaluations have them too, but look nothing up in previous
    responses.
  """

  num_prompts: int = ranged(64, 1)
  group_size: int = ranged(8, 1)
  max_prompt_tokens: int = ranged(64, 1)
  max_response_tokens: int = ranged(32, 1)
  temperature: float = ranged(1.0, 0.0, open_low=True)
  stop: tuple[str, ...] = ()  # texts that end a response, as '\n\n'
  show_stop: bool = False
  overlong_prompt: str = chosen('error', ('error', 'skip'))
  max_rounds: int = ranged(10, 1)  # generation rounds of dynamic sampling
  round_prompts: int | None = ranged(None, 1)
  slots: int | None = ranged(None, 1)
  cache_tokens: int | None = ranged(None, 1)
  host_cache_tokens: int | None = ranged(None, 1)
  turns: TurnConfig | None = None
  window_tokens: int | None = ranged(None, 1)
  recorded_prompts: int = ranged(0, 0)
  sampler_weights: str = chosen(rounding.TRAINER, rounding.SAMPLER_WEIGHTS)
  parts: int = ranged(1, 1)
  staleness: int = ranged(0, 0)
  order: str = chosen(FIXED, ORDERS)
  speculative: Drafts | None = None

  def __post_init__(self):
    if not all(isinstance(text, str) for text in self.stop):
      raise ValueError(f'RolloutConfig.stop = {self.stop!r}: expected texts')
    if self.show_stop and not self.stop:
      raise ValueError('rollout.show_stop = True, but rollout.stop is empty')

  @property
  def turn_limits(self) -> TurnConfig:
    """The limits of `turns`; ValueError if a response is a single turn."""
    if self.turns is None:
      raise ValueError('rollout.turns = None: these rollouts have no episodes')
    return self.turns

  @property
  def generated_prompts(self) -> int:
    """Prompts of one generation round."""
    return self.round_prompts or self.num_prompts

  @property
  def engine_config(self) -> EngineConfig:
    """The configuration of the engine that samples the rollouts."""
    return EngineConfig(
      group_size=self.group_size,
      max_response_tokens=self.max_response_tokens,
      slots=self.slots,
      cache_tokens=self.cache_tokens,
      turns=self.turns,
      new_tokens=self.window_tokens,
      speculative=self.speculative,
    )


@dataclasses.dataclass(frozen=True)
class Judging:
  """The sources of rewards of sampled rows: runner, reward models, judges."""

  runner: Any
  learned: LearnedRewards = NO_LEARNED
  judges: Judges = NO_JUDGES


class Collector:
  """Fills one batch of trajectories with rewards."""

  def __init__(
    self,
    rollout: RolloutConfig,
    *,
    engine: Engine,
    score: Callable,
    prompts: PromptSet,
    selector: PromptSelector,
    judging: Judging,
    key: jax.Array,
    mesh: jax.sharding.Mesh | None = None,
  ):
    """mesh: what is sampled goes there; None: it stays on the engine's."""
    self._rollout, self.engine, self._score = rollout, engine, score
    self.prompts, self.task = prompts, prompts.task
    self.group_size = rollout.group_size
    self.num_prompts = rollout.generated_prompts
    self.selector, self.key = selector, key
    self.runner = judging.runner
    self._learned, self._judges = judging.learned, judging.judges
    self._add_scores = functools.partial(
      with_learned, {**self._learned.weights, **self._judges.weights}
    )
    # Of this round, where an opponent's rows will come; None: they will not.
    self._sides: list[compared.Side] | None = None
    self.stop = make_stop(prompts.tokenizer, rollout.stop, rollout.show_stop)
    self._warnings = RepeatedWarnings()
    mesh = engine.mesh if mesh is None else mesh
    # Whether samplers have their own devices, and what they have started.
    self.apart = mesh != engine.mesh
    self._ahead: tuple[Sampler, Trajectories] | None = None
    self.row_inputs = functools.partial(
      token_inputs, prompts.task, prompts.tokenizer
    )
    self.rows = mesh_lib.rows(mesh)
    self.replicated = replicated = mesh_lib.replicated(mesh)
    self.jitted = functools.cache(
      lambda function: jax.jit(function, out_shardings=replicated)
    )
    self.jitted_rows = functools.cache(
      lambda function: jax.jit(function, out_shardings=self.rows)
    )

  @property
  def _weights(self) -> dict[str, float]:
    """Weights of the components that each side's rows have when judged."""
    late = () if self._sides is None else self._judges.compares
    weights = {**self.task.reward_weights, **self._judges.weights}
    return {name: x for name, x in weights.items() if name not in late}

  def collect(self, draw: Draw) -> Collected:
    """The batch of an iteration."""
    rollout, method = self._rollout, draw.method

    def score(traj):
      return self._score(draw.params, traj, method)

    self._judges.begin(draw.weights)
    sampler = Sampler(
      self, draw.weights, draw.policy_version, draw.first_serial, score
    )
    begun = None
    if self._ahead is not None:
      (sampler, begun), self._ahead = self._ahead, None
    filtered, wrapper = method.group_filter is not None, method.wrapper
    early = not filtered and not wrapper.extends
    trajs, rounds, kept = [], [], []
    for number in range(rollout.max_rounds):
      traj, metrics, played = self._round(
        sampler, wrapper, begun, score if early else None
      )
      begun = None
      rounds += played
      if early:
        (done,) = played
        length_NG = done.responses['length'].reshape(done.reward_NG.shape)
        return Collected(traj, metrics, rounds, length_NG)
      trajs.append(traj)
      if not filtered:
        break
      keep_N = processes.read(self.jitted(kept_groups)(method, traj))
      kept += [
        number * rollout.generated_prompts + int(i)
        for i in np.flatnonzero(keep_N)
      ]
      if len(kept) >= rollout.num_prompts:
        break
    traj = self._fill(trajs, kept) if filtered else trajs[-1]
    # The batch is of no single round: read its lengths.
    length_NG = processes.read(traj.length_B).reshape(traj.num_prompts, -1)
    traj, metrics = score(traj)
    return Collected(traj, metrics, rounds, length_NG)

  def _round(
    self,
    sampler: Sampler,
    wrapper: RolloutWrapper,
    begun: Trajectories | None,
    score: Callable | None,
  ) -> tuple[Trajectories, dict[str, Any], list[Round]]:
    """(rewarded rows, score metrics, their rounds).

    begun: see _draw. score: of rows that are scored while the host verifies
    them; None: they are scored later.
    """
    drawn, judged, last = self._draw(sampler, wrapper, begun)
    traj, metrics = self._joined(drawn), {}
    if score is not None:
      traj, metrics = score(traj)
    learned = self._scores(traj)
    judged.append(self.judge(*last))
    done = joined([part for part, _ in judged])
    components = [c for _, part in judged for c in part]
    traj = self._with_rewards(traj, components, learned, done.beats_NGG)
    rounds = [done]
    if wrapper.extends:
      traj, more = self._extended(traj, done, sampler, wrapper)
      rounds += more
    indices = done.indices[:: self.prompts.players]
    self.selector.observe(indices, self._summary_of(judged))
    return traj, metrics, rounds

  def begin(self, params: Any, first_serial: int, policy_version: int) -> None:
    """Dispatches the rollout that the next collect, of these weights, returns.

    The selector is as if it had not been asked: what it chooses next depends
    only on its state, so a run that is interrupted here begins it again.
    """
    before = self.selector.state
    chosen = self.selector.select(self._rollout.generated_prompts)
    self.selector.state = before
    sampler = Sampler(self, params, policy_version, first_serial, None)
    examples, *arrays = self.prompts.batch(chosen)
    self._ahead = sampler, sampler.start(arrays, examples)

  def _draw(
    self,
    sampler: Sampler,
    wrapper: RolloutWrapper,
    begun: Trajectories | None,
  ) -> tuple[list[Trajectories], list[tuple], tuple]:
    """(rows of all parts, judged ones of all but the last, the last).

    begun: the rows, if `begin` has dispatched them. A part is dispatched when
    the one before it has been decoded, which the host then judges. All at once
    would not do: CPUs decode them side by side.
    """
    self._sides = None if wrapper.rivals is None else []
    count, players = self._rollout.generated_prompts, self.prompts.players
    chosen = self.selector.select(count // players)
    indices = np.repeat(chosen, players)  # a prompt for each player of a game
    examples, *arrays = self.prompts.batch(chosen)
    size = count // self._rollout.parts
    drawn, judged, last = [], [], ()
    for place in range(0, count, size):
      own = slice(place, place + size)
      if drawn:
        jax.block_until_ready(drawn[-1].length_B)
      traj = begun
      if traj is None:
        traj = sampler.start(
          [x[own] for x in arrays], examples[own], piece=wrapper
        )
      if self.apart:
        traj = processes.put(traj, self.replicated)
      if last:
        judged.append(self.judge(*last))
      drawn.append(traj)
      last = (traj, examples[own], indices[own])
    return drawn, judged, last

  def _joined(self, parts: list[Trajectories]) -> Trajectories:
    """The rows of all parts, on the device."""
    if len(parts) == 1:
      return parts[0]
    return self.jitted(laid_end_to_end)(tuple(parts))

  def verify(
    self,
    traj: Trajectories,
    examples: list[Any],
    indices: np.ndarray,
    given_B: np.ndarray | int = 0,
  ) -> tuple[Trajectories, Round]:
    """The rewarded rows and the round; given_B: see judge."""
    learned = self._scores(traj)
    done, components = self.judge(traj, examples, indices, given_B)
    traj = self._with_rewards(traj, components, learned, done.beats_NGG)
    return traj, done

  def _scores(self, traj: Trajectories) -> dict[str, jax.Array]:
    """Learned scores that are due before rows of an opponent have come."""
    if self._sides is None:
      return self._learned.score(traj)
    return self._learned.single(traj)

  def judge(
    self,
    traj: Trajectories,
    examples: list[Any],
    indices: np.ndarray,
    given_B: np.ndarray | int = 0,
    due_B: np.ndarray | None = None,
  ) -> tuple[Round, list]:
    """Decodes and verifies: the round, and components or None by row.

    given_B: tokens of the response that were there before. due_B: rows that are
    verified; None: all.
    """
    host = responses.fetch_responses(traj, len(examples))
    own = responses.own_rows(len(examples), traj.group_size)
    texts = responses.Texts(host, own, self.stop)
    said, sides = self.runner.said(texts, own), self._sides
    outcomes = self._judges.add(
      self.runner.outcomes(traj, examples, texts, due_B),
      examples,
      said,
      traj.group_size,
      single=sides is not None,
    )
    if sides is not None:
      sides.append(compared.Side(outcomes, said))
    components = [o.components for o in outcomes]
    return Round(
      indices=indices,
      examples=examples,
      texts=texts,
      errors=[o.error for o in outcomes],
      reward_NG=total_rewards(components, self._weights, traj.group_size),
      tokens=int((host['sampled'] - given_B).sum()),
      responses=host,
      shown=self.runner.shown(),
      metrics={**self.runner.metrics(), **self._judges.metrics()},
      beats_NGG=self._judges.beats_NGG,
    ), components

  def _summary_of(self, judged):
    """Returns what the selector observes of a round in parts."""
    parts = [self._summary(*part) for part in judged]
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)

  def _summary(self, done, components):
    """Returns what the selector observes of a round; log-probs are of own
    rows.
    """
    shape = done.reward_NG.shape
    logp = processes.gather(done.responses['logp'].sum(axis=1).tolist())
    logp_NG = np.asarray([x for part in logp for x in part], np.float32)
    length_NG = done.responses['sampled'][: logp_NG.size].reshape(shape)
    outcome = [c[base.OUTCOME] if c else 0.0 for c in components]
    arrays: dict[str, Any] = {
      'reward_NG': done.reward_NG,
      'right_NG': np.asarray(outcome, np.float32).reshape(shape) > 0.5,
      'length_NG': length_NG,
      'entropy_NG': -logp_NG.reshape(shape) / np.maximum(length_NG, 1),
    }
    summary = GroupSummary(**arrays)
    # The groups of all players of a game are of one index.
    games = shape[0] // self.prompts.players
    return jax.tree.map(lambda x: x.reshape(games, -1), summary)

  def _extended(
    self,
    traj: Trajectories,
    done: Round,
    sampler: Sampler,
    wrapper: RolloutWrapper,
  ) -> tuple[Trajectories, list[Round]]:
    """(groups with what a rollout piece adds, the rounds of that).

    Groups of policy and opponent get the scores of all that compare rows, and
    the rounds, `done` too, the rewards.
    """
    traj, rounds = wrapper.extend(traj, done, sampler)
    kind, sides = wrapper.rivals, [done, *rounds]
    if kind is None or self._sides is None:
      return traj, rounds
    judged = compared.judged(self._judges, self._sides, sides, kind)
    scores = self._learned.compare(traj, kind)
    scores = {**scores, **processes.put(judged, self.replicated)}
    if scores:
      traj = self.jitted(self._add_scores)(traj, scores)
    return traj, rounds

  def _with_rewards(self, traj, components, learned, beats_NGG=None):
    """Puts rewards on the device; a failed sample gets valid = 0.

    learned: scores that the device has already. beats_NGG: see Judges.
    """
    arrays = reward_arrays(components, self._weights)
    rewards, total, valid = processes.put(arrays, self.replicated)
    described = self.jitted(self.row_inputs)(traj)
    if beats_NGG is not None:
      beats_BG = beats_NGG.reshape(-1, traj.group_size)
      described = {**described, BEATS: processes.put(beats_BG, self.replicated)}
    traj = traj.replace(
      rewards=rewards,
      reward_B=total,
      valid_B=valid,
      weight_B=valid,
      extras={**traj.extras, **described},
    )
    return self._learned.add(traj, learned)

  def _fill(self, trajs, kept):
    """The first num_prompts kept groups; too few are topped up at weight 0."""
    wanted = self._rollout.num_prompts
    if len(kept) < wanted:
      self._warnings.warn(
        'dynamic sampling kept %d of %d groups after %d rounds',
        len(kept),
        wanted,
        len(trajs),
      )
    total = len(trajs) * self._rollout.generated_prompts
    spare = [i for i in range(total) if i not in set(kept)]
    chosen = (kept + spare)[:wanted]
    groups = processes.put(np.asarray(chosen, np.int32), self.replicated)
    return self.jitted(take_from_rounds)(tuple(trajs), groups)


def kept_groups(method: Method, traj: Trajectories) -> jax.Array:
  """Returns what the method's group filter keeps, [N]."""
  assert method.group_filter is not None
  return method.group_filter(CreditContext(traj.reward_B, traj)).value
