"""VerIPO: GRPO, pairs that a verifier makes, DPO on them, and again.

A start by supervised training and 20 iterations of GRPO, which has the outcome
as its only reward; then two rounds. `verified` makes pairs of the samples that
the last GRPO has logged: a right response that agrees with its own chain,
checks it and has all steps, against a wrong one, one that contradicts its
chain, and one with too many steps; 20 steps of DPO follow, with the GRPO policy
as the reference, and 20 iterations of GRPO without 80% of the prompts that four
samples solve.
`outcomes` has pairs of a right and a wrong sample, and keeps all prompts;
`plain` is 40 iterations of GRPO a round, which sample twice as often.
Command: python -m experiments.pipeline --pipeline=veripo --workdir=runs/veripo
Cost: about five minutes of a CPU core.
Claims: of the samples on held-out prompts more are right and checked with
  `verified` than with `outcomes` and with `plain`, and as many are right as
  with `plain`.
Expected: see experiments/papers/worlds/README.md.
Source: VerIPO (HITsz-TMG/VerIPO, README.md, by a digest; there is no training
  code); sizes are ours. There a small model verifies chains, here a rule; of
  the prompts that are discarded the training split is evaluated once a round.
"""

from experiments.pipelines import chain_stages
from experiments.pipelines.rounds import unrolled
from experiments.pipelines.stages import Stage

ROUNDS = 2
_PROMPTS = 1000
_TASK = f'FamilyChains(num_train={_PROMPTS})'


def _grpo(name: str, start: str, iterations: int, task: str = _TASK) -> Stage:
  return Stage(
    name=name,
    flags=(
      *(*chain_stages.CONFIG, '--method=grpo@no_kl', f'--set=task={task}'),
      *(f'--set=model.path={{{start}}}', f'--set=iterations={iterations}'),
      *(f'--set=evaluation.every={iterations}', '--set=guards.log_rollouts=32'),
    ),
  )


def _dpo(kind: str) -> Stage:
  return Stage(
    name=f'aligned_{kind}',
    flags=(
      *(*chain_stages.CONFIG, '--method=dpo', '--set=iterations=20'),
      f'--set=model.path={{policy_{kind}}}',
      *chain_stages.recorded(f'{{pairs_{kind}}}.jsonl', samples=2),
    ),
  )


def _unsolved() -> tuple[Stage, Stage]:
  """Outcomes of the training prompts, and those that stay."""
  return (
    Stage(
      name='outcomes_of_prompts',
      binary='evaluate',
      flags=(
        *('--checkpoint={policy_verified}', f'--data={chain_stages.NAME}'),
        *(f'--set=task={_TASK}', '--split=train', f'--limit={_PROMPTS}'),
        *('--num_samples=4', '--out={out}.jsonl'),
      ),
    ),
    Stage(
      name='kept',
      binary='select_rows',
      flags=(
        *('--data={prompts}.jsonl', '--rule=unsolved', '--keep=0.2'),
        *('--outcomes={outcomes_of_prompts}.jsonl', '--seed={number}'),
        '--out={out}.jsonl',
      ),
    ),
  )


def get_stages() -> tuple[Stage, ...]:
  """A start, and ROUNDS rounds of each kind."""
  start = (
    chain_stages.WARM,
    Stage(
      name='prompts',
      binary='papers.worlds.target_rows',
      flags=(
        *(f'--config={chain_stages.NAME}', f'--set=task={_TASK}'),
        *(f'--limit={_PROMPTS}', '--out={out}.jsonl'),
      ),
    ),
    _grpo('policy', 'warm', 20),
  )
  kept = f"KeptPrompts(task={_TASK}, path='{{kept}}.jsonl')"
  body = (
    chain_stages.rows('pairs_verified', 'verified', 'policy_verified'),
    *_unsolved(),
    _dpo('verified'),
    _grpo('policy_verified', 'aligned_verified', 20, kept),
    Stage(
      name='pairs_outcomes',
      binary='rollout_rows',
      flags=('--workdir={policy_outcomes}', '--out={out}.jsonl'),
    ),
    _dpo('outcomes'),
    _grpo('policy_outcomes', 'aligned_outcomes', 20),
    _grpo('policy_plain', 'policy_plain', 40),
  )
  first = {
    f'policy_{kind}': 'policy' for kind in ('verified', 'outcomes', 'plain')
  }
  return unrolled(start, body, ROUNDS, first)
