"""A public host, a commit and .ci/run make the same targets."""

import pathlib
import re

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[1]
MAKEFILE = (ROOT / 'Makefile').read_text()
JOBS = yaml.safe_load((ROOT / '.github/workflows/test.yml').read_text())['jobs']
(LOCAL,) = yaml.safe_load((ROOT / '.pre-commit-config.yaml').read_text())[
  'repos'
]


def targets_of(text):
  """The targets of make that a script calls."""
  found = re.findall(r'^\s*make ([\w-]+)', text, re.M)
  return {name for line in found for name in line.split()}


def in_workflow():
  """The same of all steps of the workflow."""
  steps = [step for job in JOBS.values() for step in job['steps']]
  return targets_of('\n'.join(step.get('run', '') for step in steps))


def test_targets_exist():
  """Each has a rule, so that a renamed one is noticed here."""
  rules = set(re.findall(r'^([\w-]+):', MAKEFILE, re.M))
  hooks = targets_of('\n'.join(hook['entry'] for hook in LOCAL['hooks']))
  assert in_workflow() | hooks <= rules


def test_all_three_run_the_same():
  """The workflow also installs; a hook is named as its target."""
  ci = targets_of((ROOT / '.ci/run').read_text())
  assert ci == {'lint', 'docs', 'test'}
  assert in_workflow() - {'install', 'newest-jax'} == ci
  assert {hook['id'] for hook in LOCAL['hooks']} == ci
  for hook in LOCAL['hooks']:
    assert hook['entry'] == f'make {hook["id"]}'
    assert hook['language'] == 'system' and not hook['pass_filenames']


def test_versions_are_those_that_are_promised():
  """The lowest Python and the pinned JAX among them; types are in lint."""
  matrix = JOBS['test']['strategy']['matrix']
  project = (ROOT / 'pyproject.toml').read_text()
  assert f'requires-python = ">={matrix["python"][0]}"' in project
  pinned, newest = matrix['jax']
  assert f'\njax=={pinned}\n' in (ROOT / 'requirements.txt').read_text()
  conditions = [step.get('if', '') for step in JOBS['test']['steps']]
  assert f"matrix.jax == '{newest}'" in conditions
  lint = re.search(r'^lint:.*\n((?:\t.*\n)+)', MAKEFILE, re.M)
  assert 'ruff check' in lint[1] and 'pyrefly check' in lint[1]
