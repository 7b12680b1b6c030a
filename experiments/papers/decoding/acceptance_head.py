"""Trains the acceptance head of a draft model, and prints what it changes.

python -m experiments.papers.decoding.acceptance_head --checkpoint=runs/policy
  --draft=runs/small --out=head.npz --num_samples=4 --limit=256

--checkpoint answers --limit prompts of the training split, and the head learns
from the last states of --draft which of its tokens the policy accepts
(decoding.drafts.acceptance). A run uses it with
--set='rollout.speculative=DraftModel(path="runs/small", head="head.npz")'.

A JSON line for each way of stopping a draft, measured on --limit prompts of
--split: never, by the draft model's own probabilities, and by the head.
accepted_length: tokens that a forward pass of the policy adds to a row;
drafted_length: forward passes of the draft model for it. With --coupling=
rejection the head learns how probably a token is kept, min(1, p / q). The other
flags are those of experiments.evaluate.
"""

from collections.abc import Iterator
import dataclasses
import functools
import json

from absl import flags
import jax
import jax.numpy as jnp

from experiments.flags import configuration, outputs
from experiments.flags import evaluation as evaluation_flags
from rl_jax import api, randomness
from rl_jax.config import ExperimentConfig, evaluated_tokens
from rl_jax.decoding.drafts import acceptance
from rl_jax.decoding.drafts.settings import REJECTION, UNIFORM, DraftModel
from rl_jax.decoding.engine import Engine, EngineConfig, make_engine
from rl_jax.decoding.stop import make_stop
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.runs import assembly, directory, draft_model
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.evaluation import sampling_of
from rl_jax.types import Trajectories

_CHECKPOINT = flags.DEFINE_string(
  'checkpoint', None, 'Policy, as for experiments.evaluate.', required=True
)
_DRAFT = flags.DEFINE_string('draft', None, 'Draft model.', required=True)
_OUT = flags.DEFINE_string('out', None, 'File of the head.', required=True)
_TOKENS = flags.DEFINE_integer(
  'tokens', 20, 'Of a draft at most.', lower_bound=1, upper_bound=64
)
_LEAST = flags.DEFINE_integer('least', 2, 'Before it stops.', lower_bound=1)
_THRESHOLD = flags.DEFINE_float(
  'threshold', 0.3, 'Of P(some token is wrong).', lower_bound=0, upper_bound=1
)
_STEPS = flags.DEFINE_integer('steps', 300, 'Of the fit.', lower_bound=1)
_RATE = flags.DEFINE_float('learning_rate', 1e-3, 'Of Adam.', lower_bound=0)
_COUPLING = flags.DEFINE_enum(
  'coupling',
  REJECTION,
  (REJECTION, UNIFORM),
  'Of draft and policy, as of DraftModel.',
)
_SEED = flags.DEFINE_integer('seed', 0, 'Of all draws.', lower_bound=0)
evaluation_flags.define_flags()


@dataclasses.dataclass(frozen=True)
class Setup:
  """A policy, its draft model, and how both are sampled."""

  config: ExperimentConfig
  policy: policy_lib.Policy
  draft: draft_model.Loaded
  mesh: jax.sharding.Mesh

  @property
  def group_size(self) -> int:
    """Responses to a prompt."""
    return max(1, self.config.evaluation.num_samples)

  @property
  def sampling(self):
    """The sampling of an evaluation, with what ends a response."""
    stop = make_stop(self.policy.tokenizer, self.config.rollout.stop)
    return sampling_of(self.config).replace(
      eos_ids=stop.ids, stop_SV=stop.table
    )

  @property
  def key(self) -> jax.Array:
    """The key of all draws."""
    return assembly.run_key(_SEED.value, self.mesh)

  def engine(self, drafts: DraftModel | None = None, head=None) -> Engine:
    """Plain decoding, or with drafts."""
    model, params = self.draft
    more = {} if head is None else {'head': head}
    return make_engine(
      self.policy.model,
      self.sampling,
      EngineConfig(
        group_size=self.group_size,
        max_response_tokens=evaluated_tokens(self.config),
        slots=self.config.rollout.slots,
        speculative=drafts,
      ),
      self.mesh,
      draft_model=(model, {**params, **more}),
    )

  def responses(self, engine: Engine, split: str) -> Iterator[Trajectories]:
    """Responses to the first prompts of a split, in batches of one size."""
    rollout, settings = self.config.rollout, self.config.evaluation
    prompts = PromptSet(
      self.config.task,
      split,
      self.policy.tokenizer,
      rollout.max_prompt_tokens,
      rollout.overlong_prompt,
    )
    count = min(settings.num_prompts, len(prompts))
    batch = min(settings.batch_prompts, count)
    for start in range(0, count - batch + 1, batch):
      _, *arrays = prompts.batch(range(start, start + batch))
      traj = engine.start(*arrays, start, 0)
      yield engine.generate(self.policy.params, traj=traj, key=self.key)


def fit(setup: Setup) -> dict[str, jax.Array]:
  """The head, from responses to the training split."""

  @jax.jit
  def rows_of(params, policy, traj, key):
    shape = traj.response_BT.shape
    numbers = randomness.purpose_key(key, randomness.SAMPLING)
    others = randomness.purpose_key(key, randomness.PIECES)
    uniform = functools.partial(
      randomness.row_token_uniform, row_id_B2=traj.row_id_B2, length=shape[1]
    )
    return acceptance.training_rows(
      (setup.draft[0], params),
      traj,
      setup.sampling,
      uniform(numbers),
      uniform(others) < acceptance.TRUE_FRACTION,
      (setup.policy.model, policy) if _COUPLING.value == REJECTION else None,
    )

  found = [
    rows_of(setup.draft[1], setup.policy.params, traj, setup.key)
    for traj in setup.responses(setup.engine(), 'train')
  ]
  rows = jax.tree.map(lambda *x: jnp.concatenate(x), *found)
  head, loss_K = jax.jit(
    functools.partial(
      acceptance.fit_head, steps=_STEPS.value, learning_rate=_RATE.value
    )
  )(rows, setup.key)
  _, accepted_R, mask_R = rows
  line = {
    'tokens': int(mask_R.sum()),
    'accepted': float((accepted_R * mask_R).sum() / mask_R.sum()),
    'loss_first': float(loss_K[0]),
    'loss_last': float(loss_K[-1]),
  }
  print(json.dumps(line), flush=True)
  return head


def measured(setup: Setup, drafts: DraftModel, head=None) -> dict[str, float]:
  """Means over the forward passes of rows, on prompts that are held out."""
  engine = setup.engine(drafts, head)
  split = setup.config.evaluation.split or 'validation'
  jax.block_until_ready(list(setup.responses(engine, split)))
  found = engine.drafts.metrics()
  return {
    name.removeprefix('rollout/'): round(float(x), 3)
    for name, x in found.items()
  }


def load() -> Setup:
  """The setup that the flags name; raises ValueError if parts do not fit."""
  outputs.check_file('out', _OUT.value)
  config = evaluation_flags.from_flags(directory.run_of(_CHECKPOINT.value))
  mesh = assembly.make_mesh(config)
  jax.set_mesh(mesh)
  model, params, tokenizer = policy_lib.load_checkpoint(_CHECKPOINT.value, mesh)
  config = api.within(config, model)
  policy = policy_lib.Policy(
    model=model, tokenizer=tokenizer, trainable=params, frozen={}
  )
  own = dataclasses.replace(
    config.rollout, speculative=DraftModel(path=_DRAFT.value)
  )
  draft = draft_model.load(
    dataclasses.replace(config, rollout=own), tokenizer, mesh
  )
  assert draft is not None  # --draft names one
  return Setup(config=config, policy=policy, draft=draft, mesh=mesh)


def main(argv):
  """Samples, fits, writes, measures."""
  del argv
  setup = load()
  head = fit(setup)
  acceptance.save_head(_OUT.value, head)
  drafts = functools.partial(
    DraftModel,
    path=_DRAFT.value,
    tokens=_TOKENS.value,
    least=_LEAST.value,
    coupling=_COUPLING.value,
  )
  for name, source, used in (
    ('never', drafts(threshold=1.0), None),
    ('probabilities', drafts(threshold=_THRESHOLD.value), None),
    ('head', drafts(threshold=_THRESHOLD.value, head=_OUT.value), head),
  ):
    line = {'stops': name, **measured(setup, source, used)}
    print(json.dumps(line), flush=True)


if __name__ == '__main__':
  configuration.run(main)
