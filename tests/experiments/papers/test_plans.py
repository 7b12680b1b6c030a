"""Plans of recipes: every row fits its pods, and the files are complete."""

import dataclasses

import pytest

from experiments import plan
from experiments.papers import pods
from experiments.papers import recipe as recipe_lib
from rl_jax.planning import targets

# Whose settings of memory are chosen for their pods.
FITTED = (
  *('bleuberi', 'dapo', 'disco', 'dr_grpo', 'entropy_mechanism'),
  *('ghpo', 'gigpo', 'gspo_empo', 'nft', 'ragen', 'search_r1'),
  *('simplerl_zoo',),
  *('simpo', 'spiral', 'spo_segments', 'thinkless', 'toolrl'),
  *('torl', 'tulu3_rlvr', 'verl_baselines'),
)
SMALL = targets.Target.parse('gpu:h100:1x1x1')


@pytest.mark.parametrize('name', FITTED)
def test_every_row_has_a_plan_for_its_pods(name):
  """`python -m experiments.papers.plans` writes them."""
  recipe = recipe_lib.load(name)
  wanted = [
    (row, pod)
    for row, one in recipe.rows.items()
    for pod in one.pods or recipe.pods
  ]
  lines = pods.read(name)
  assert [(line['row'], line['target']) for line in lines] == wanted
  for line in lines:
    assert 'error' not in line, line
    assert 0 < line['needed'] <= 0.9 * line['limit'], line['row']
    assert line['hours'] > 0 and line['smallest'] is not None
    assert line['smallest']['devices'] <= line['devices'], line['row']


@pytest.mark.parametrize('name', FITTED)
def test_plans_are_of_the_shapes_of_today(name):
  """A changed recipe is planned again."""
  for line in pods.read(name):
    config = recipe_lib.experiment(name, line['row'])
    target = targets.Target.parse(line['target'])
    assert line['shapes'] == pods.shapes(pods.on(config, target.count))


@pytest.mark.parametrize('name', FITTED)
def test_what_was_compiled_fits(name):
  """Every program leaves a tenth of the memory of its device."""
  for line in pods.read(name):
    programs = line.get('compiled', {}).get('programs', {})
    for stage, program in programs.items():
      assert program['memory'] <= 0.9 * line['limit'], (line['row'], stage)


def test_a_set_that_nobody_has_counted_is_planned_with_about_its_size():
  """Without it NFT would be evaluated on 65,536 problems of each set."""
  recipe = recipe_lib.load('nft')
  config = recipe_lib.experiment('nft', 'nft_7b')
  assert {one.limit for one in config.evaluation.sets} == {None}
  sets = pods.counted(recipe, config).evaluation.sets
  assert [one.limit for one in sets] == [30, 500, 30, 40, 675, 272]
  assert plan.of_recipe('nft').evaluation.sets == sets  # and by its compilers


def test_the_smallest_slice_names_its_settings():
  """A 7B with adapters on one device needs few slots; 14B needs two."""
  config = recipe_lib.experiment('verl_baselines', 'grpo_lora_7b')
  found = pods.smallest(config, SMALL)
  assert found is not None and found['devices'] == 1
  assert any(text.startswith('rollout.slots=') for text in found['set'])
  larger = recipe_lib.experiment('verl_baselines', 'grpo_lora_14b')
  assert pods.smallest(larger, SMALL)['devices'] > 1


def test_a_row_that_does_not_fit_says_so():
  """Rows that devices cannot share are an error in the plan."""
  config = recipe_lib.experiment('dr_grpo', 'dr_grpo_1p5b')
  three = dataclasses.replace(SMALL, shape=(1, 1, 3))
  assert 'must divide' in pods.planned(config, three)['error']


def test_recorded_rows_that_are_not_here(monkeypatch, tmp_path, capsys):
  """Rows by hand fill a batch and what is held out, and the plan says so."""
  monkeypatch.chdir(tmp_path)
  recipe = recipe_lib.load('simpo')
  config = recipe_lib.experiment('simpo', 'simpo_mistral_base')
  with pytest.raises(FileNotFoundError):
    config.task.num_prompts('train')
  planned = plan.with_rows(config, recipe)
  assert planned.task.num_prompts('train') >= config.rollout.recorded_prompts
  assert 'pairs.jsonl is not here: planned with' in capsys.readouterr().out
  for path, other in (('gspo_empo', 'gspo_1p5b'), ('simpo', None)):
    same = recipe_lib.experiment(path, other) if other else planned
    assert plan.with_rows(same, recipe_lib.load(path)) == same


def test_a_recipe_that_trains_nothing_has_no_plans(monkeypatch, tmp_path):
  """It measures a released model."""
  path = tmp_path / 'plan.jsonl'
  monkeypatch.setattr(pods, 'path_of', lambda _: str(path))
  pods.write('rlhflow', list(pods.lines_of('rlhflow', pods.read('rlhflow'))))
  assert not path.exists()


def test_an_unknown_row_is_named():
  with pytest.raises(ValueError, match='--row=x --target=y: expected one of'):
    pods.place_of([{'row': 'a', 'target': 'b'}], 'x', 'y')
