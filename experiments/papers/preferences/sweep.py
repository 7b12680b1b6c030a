"""Preference methods, offline and online, from one warm start.

python -m experiments.train --config=configs/worlds/preferences.py --method=sft
  --set=task.form=right --set=rollout.group_size=1 --workdir=runs/warm
python -m experiments.sweep --paper=preferences --workdir=runs/preferences
python -m experiments.papers.preferences.excerpt --workdir=runs/preferences
  --out=experiments/papers/preferences/results.jsonl
python -m experiments.table --paper=preferences --update

Every run sees 128 responses an iteration: offline 64 pairs of a right answer
and the same with one wrong digit, online 16 prompts with 8 samples each, which
the rule judges. Of methods with an opponent half of the samples are its own.
"""

import dataclasses
from typing import Any

from experiments.sweeps import runs as sweep_runs
from experiments.sweeps.runs import Setting

START = 'runs/warm'


@dataclasses.dataclass(frozen=True)
class Claim:
  """A claim of a paper, in one line.

  metric: of the table. sign: of the difference; 0: not worse; None: nothing is
    claimed. against: the method of the table that it is compared with.
  """

  text: str
  metric: str
  sign: int | None = 1
  against: str = 'dpo'


def _keeps(what: str) -> Claim:
  return Claim(what, 'chosen')


OFFLINE = {
  'dpo': None,
  'ipo': Claim('smaller margins: they end at 1 / (2 beta)', 'margin', -1),
  'simpo': Claim('better without a reference', 'greedy'),
  'kto': Claim('as good from labels only', 'greedy', 0),
  'orpo': _keeps('chosen responses become likelier'),
  'dpop': _keeps('chosen responses do not fall below the reference'),
  'apo_zero': _keeps('chosen responses become likelier'),
  'nca': _keeps('chosen responses stay likely'),
}
_BETTER, _AS_GOOD = Claim('better than DPO', 'greedy'), 'as good as DPO'
# Later runs, of a separate commit; claims named before them. ld_dpo is
# DPO here, as both responses of a pair have one length.
MORE = {
  'cdpo': Claim('smaller margins: labels are smoothed', 'margin', -1),
  'robust_dpo': Claim(_AS_GOOD + ' without noise', 'greedy', 0),
  'slic': _keeps('chosen responses stay likely'),
  'bco': Claim('as good from labels only', 'greedy', 0),
  'cpo': _keeps('chosen responses become likelier'),
  'rpo': _keeps('chosen responses stay likely'),
  'exo': _BETTER,
  'aot': _BETTER,
  'apo_down': Claim('chosen responses become less likely', 'chosen', -1),
  'discopop': _BETTER,
  'fdpo': Claim(_AS_GOOD, 'greedy', 0),
  'wpo': _BETTER,
  'ln_dpo': _BETTER,
}
# A third batch, with changes of COMMON and claims, all named before it ran; DPO
# and what the claims compare with run beside it. As many responses from right
# answers only are seen as of pairs.


def _against(text: str, name: str, sign: int | None = 1) -> Claim:
  return Claim(f'{text} (against {name})', 'greedy', sign, name)


_ALONE = {'task.form': 'right', 'rollout.group_size': 1}
_ALONE |= {'rollout.num_prompts': 128, 'rollout.logged_prompts': 128}
# A group is two samples of the policy of before, the record and an empty row.
_RECORDS = {'rollout.group_size': 2, 'rollout.logged_prompts': 0}
_RECORDS |= {'task.form': 'right', 'method.reference.iterations': 20}
THIRD = {
  **dict.fromkeys(('dpo', 'simpo'), ({}, None)),
  'alphapo': ({}, _against('better', 'simpo')),
  'cpo_simpo': ({}, _keeps('chosen responses become likelier')),
  'd2po': ({}, _BETTER),
  'hinge_dpo': ({}, Claim(_AS_GOOD, 'greedy', 0)),
  'mpo_losses': ({}, _keeps('chosen responses stay likely')),
  # Every 512 iterations in the paper, which are more than there are.
  'tr_dpo': ({'method.reference.iterations': 10}, _BETTER),
  'sft': (_ALONE, None),
  'f_sft': (_ALONE, _against('none', 'sft', None)),
  'spin': (_RECORDS, _against('better on the same data', 'sft')),
  'seppo': (_RECORDS, _against('better with the sign', 'spin')),
}
# The same on samples.
_OPPOSED = {'rollout.num_prompts': 8}  # half of the rows are an opponent's
THIRD_ONLINE = {
  **dict.fromkeys(('online_dpo', 'iterative_dpo'), ({}, None)),
  'nash_md': (_OPPOSED, None),
  'irpo': ({}, _against('better with the likelihood', 'iterative_dpo')),
  'dno': ({}, _against('better', 'iterative_dpo')),
  'gepo': ({}, _against('none', 'online_dpo', None)),
  'xpo': (_OPPOSED, _against('better', 'online_dpo')),
  'ipo_md': (_OPPOSED, _against('better', 'online_dpo')),
  'nash_ema': (_OPPOSED, _against('none', 'nash_md', None)),
  'infalign': (_OPPOSED, _against('none', 'nash_md', None)),
  'pairwise_rl': (
    {**_OPPOSED, 'model.value_head': True},
    _against('none', 'nash_md', None),
  ),
}
THIRD_SEED = 5  # its first: those of the others come before
# With this share of labels reversed, which the last two are given: more
# held-out pairs right, by right labels, than DPO on the same data.
FLIP_RATE = 0.3
_LINK = 'method.losses.PairLoss.link.'
NOISY = {
  'dpo': ({}, None),
  'ipo': ({}, Claim('overfits less', 'pairs')),
  'cdpo': (
    {_LINK + 'label_smoothing': FLIP_RATE},
    Claim('loses less to wrong labels', 'pairs'),
  ),
  'robust_dpo': (
    {_LINK + 'flip_rate': FLIP_RATE},
    Claim('loses less to wrong labels', 'pairs'),
  ),
}
ONLINE = {
  'online_dpo': Claim('better than offline', 'greedy'),
  'iterative_dpo': Claim('better than offline', 'greedy'),
  'rso@online': Claim('better than offline', 'greedy'),
  'sppo': _keeps('chosen responses do not fall'),
  'nash_md': Claim('better than offline', 'greedy'),
}
AGAINST = ('nash_md',)  # half of the rows are an opponent's
BASELINE = 'dpo'
COMMON = {
  'model.path': START,
  'iterations': 80,
  'optimizer.learning_rate': 3e-4,
  'evaluation.every': 80,
  'evaluation.num_prompts': 400,
  'guards.log_rollouts': 0,
}
SAMPLED = {'rollout.logged_prompts': 0, 'rollout.group_size': 8}
SEEDS = 5


def get_sweep() -> list[Setting]:
  """Seeds x methods, and those on noisy pairs."""
  members = []
  for name in (*OFFLINE, *ONLINE, *MORE):
    setting = {'config': 'preferences', 'method': name, **COMMON}
    if name in ONLINE:
      prompts = 8 if name in AGAINST else 16
      setting |= SAMPLED | {'rollout.num_prompts': prompts}
    setting['checkpoint.every'] = 10**9  # one, at the end
    members.append(setting)
  for name, (changes, _) in NOISY.items():
    setting = {'config': 'preferences', 'method': name, **COMMON, **changes}
    setting |= {'task.flip_rate': FLIP_RATE, 'checkpoint.every': 10**9}
    members.append(setting)
  seeds = sweep_runs.product({'seed': range(SEEDS)})
  return sweep_runs.crossed(seeds, members) + third()


def third() -> list[Setting]:
  """The third batch."""
  members = []
  for name, (changes, _) in (THIRD | THIRD_ONLINE).items():
    setting = {'config': 'preferences', 'method': name, **COMMON}
    if name in THIRD_ONLINE:
      setting |= SAMPLED | {'rollout.num_prompts': 16}
    members.append({**setting, **changes, 'checkpoint.every': 10**9})
  seeds = range(THIRD_SEED, THIRD_SEED + SEEDS)
  return sweep_runs.crossed(sweep_runs.product({'seed': seeds}), members)


def table_of(line: dict[str, Any]) -> str:
  """Lines of one table are of one commit."""
  setting = line['setting']
  if setting['seed'] >= THIRD_SEED:
    return 'third'
  if 'task.flip_rate' in setting:
    return 'noisy'
  return 'more' if setting['method'] in MORE else 'first'
