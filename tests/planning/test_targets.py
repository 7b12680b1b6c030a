"""Accelerators by name, and programs as their compilers see them."""

import jax
import jax.numpy as jnp
import pytest

from rl_jax.planning import collectives, programs, targets
from rl_jax.planning.targets import Target
from rl_jax.runtime.platform import Platform


@pytest.mark.parametrize(
  ('text', 'count', 'platform', 'memory'),
  [
    ('tpu:v5e:4x4', 16, Platform('tpu'), 16e9),
    ('tpu:v5p:2x2x4', 16, Platform('tpu'), 95e9),
    ('gpu:h100:1x2x8', 16, Platform('cuda', (9, 0)), 80e9),
    ('gpu:t4:1x1x1', 1, Platform('cuda', (7, 5)), 16e9),
  ],
)
def test_targets_by_hand(text, count, platform, memory):
  """The product of the sizes, and numbers of data sheets."""
  found = Target.parse(text)
  assert (found.count, found.platform) == (count, platform)
  assert found.card.memory == memory


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('tpu', 'expected tpu:CHIP:XxY'),
    ('tpu:h100:1x1x8', 'expected tpu:CHIP:XxY'),
    ('tpu:v5e:4', 'the shape of v5e has 2 sizes of at least 1, got 4'),
    ('gpu:h100:8', 'the shape of h100 has 3 sizes'),
    ('gpu:h100:1x0x8', 'sizes of at least 1'),
  ],
)
def test_what_there_is_not_is_named(text, message):
  with pytest.raises(ValueError, match=f'--target={text}: .*{message}'):
    Target.parse(text)


def test_a_missing_compiler_names_its_extra(monkeypatch):
  """The plain environment has none."""
  monkeypatch.setattr(targets.importlib.util, 'find_spec', lambda _: None)
  with pytest.raises(ModuleNotFoundError, match=r'rl_jax\[aot-tpu\]'):
    Target.parse('tpu:v5e:2x2').devices()
  with pytest.raises(ModuleNotFoundError, match=r'rl_jax\[aot-gpu\]'):
    Target.parse('gpu:h100:1x1x1').devices()


def test_what_a_compiler_says_of_a_program():
  """By hand: 4 MB in and 4 MB out, of which one donated."""
  x = jax.ShapeDtypeStruct((1024, 1024), jnp.float32)
  lowered = jax.jit(lambda x: x + 1, donate_argnums=0).lower(x)
  found = programs.compiled(lowered, devices=1)
  assert found.memory - found.temporaries == 4 * 2**20
  assert found.kernels == {} and found.collectives == []
  assert found.seconds > 0


def test_memory_of_tpus_is_that_of_the_report(tmp_path):
  """The largest of a program's modules, of HBM; 0 without a report."""
  for name, used in (('a', 939), ('b', 12)):
    report = tmp_path / f'module_{name}.jit_f.memory-usage-report.txt'
    report.write_text(
      f'Memory Space: default (color=0)\nTotal bytes: {used} (1KiB)\n\n'
      'Memory Space: vmem (color=1)\nTotal bytes: 4096 (4.0KiB)\n'
    )
  assert programs.reported(tmp_path) == 939
  assert programs.reported(tmp_path / 'none') == 0


TEXT = """
%body.1 (p: f32[8]) -> f32[8] {
  %g = f32[16]{0} all-gather(%p), replica_groups=[1,2]<=[2], dimensions={0}
}

%body.2 (p: f32[8]) -> f32[8] {
  %r = f32[8]{0} all-reduce(%p), replica_groups=[1,2]<=[2], to_apply=%add
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %a = f32[8]{0} while(%p), condition=%c, body=%body.1
  %b = f32[8]{0} while(%a), condition=%c, body=%body.2, KNOWN
}
""".replace('KNOWN', 'backend_config={"known_trip_count":{"n":"5"}}')


def test_collectives_that_every_token_waits_for():
  """By hand: of the loop without a known number of turns."""
  (found,) = collectives.in_loops(TEXT, devices=2)
  assert (found.kind, found.count, found.bytes) == ('all-gather', 1, 64)
  every = collectives.count(TEXT, devices=2, unknown_trips=3)
  assert {(x.kind, x.count) for x in every} == {
    ('all-gather', 3),
    ('all-reduce', 5),
  }


# As XLA for TPU writes a scan: its condition has the number of turns.
SCANNED = """
%body.1 (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %g = f32[16]{0} all-gather(%x), replica_groups=[1,2]<=[2], dimensions={0}
}

%scan.2 (q: (s32[], f32[8])) -> pred[] {
  %constant.7.clone = s32[]{:T(128)} constant(24), metadata={op_name="while"}
  %q = (s32[]{:T(128)}, f32[8]{0}) parameter(0)
  %element.3 = s32[]{:T(128)} get-tuple-element(%q), index=0
  ROOT %lt.1 = pred[] compare(%element.3, %constant.7.clone), direction=LT
}

%tokens.2 (r: (s32[], f32[8])) -> pred[] {
  %constant.8 = s32[]{:T(128)} constant(8)
  %r = (s32[]{:T(128)}, f32[8]{0}) parameter(0)
  %live = s32[]{:T(128)} fusion(%r), kind=kLoop, calls=%count
  ROOT %gt.1 = pred[] compare(%live, %constant.8), direction=GT
}

%pieces.2 (r: (u32[], f32[8])) -> pred[] {
  %constant.9 = u32[]{:T(128)} constant(4)
  %r = (u32[]{:T(128)}, f32[8]{0}) parameter(0)
  %element.4 = u32[]{:T(128)} get-tuple-element(%r), index=0
  ROOT %lt.3 = pred[] compare(%element.4, %constant.9), direction=LT
}

%until.2 (r: (s32[], f32[8])) -> pred[] {
  %r = (s32[]{:T(128)}, f32[8]{0}) parameter(0)
  %a = s32[]{:T(128)} get-tuple-element(%r), index=0
  %b = s32[]{:T(128)} get-tuple-element(%r), index=2
  ROOT %lt.2 = pred[] compare(%a, %b), direction=LT
}

ENTRY %main (p: (s32[], f32[8])) -> f32[8] {
  %a = (s32[], f32[8]{0}) while(%p), condition=%scan.2, body=%body.1
  %b = (s32[], f32[8]{0}) while(%a), condition=%tokens.2, body=%body.1
  %c = (s32[], f32[8]{0}) while(%b), condition=%until.2, body=%body.1
  %d = (s32[], f32[8]{0}) while(%c), condition=%pieces.2, body=%body.1
}
"""


def test_loops_of_tpu_say_in_their_condition_how_often_they_run():
  """By hand: layers; until rows end; until what varies; pieces of a product."""
  assert collectives.trips(SCANNED) == [24, None, None, 4]
  (found,) = collectives.count(SCANNED, devices=2, unknown_trips=3)
  assert found.count == 24 + 3 + 3 + 4
  assert len(collectives.in_loops(SCANNED, devices=2)) == 2
  assert len(collectives.in_loops(SCANNED, devices=2, trips=24)) == 1
