"""Trains a policy on rows of recorded forms (configs/worlds/web_form.py)."""


def clone_flags(
  start: str, rows: str, prompt_tokens: int, iterations: int
) -> tuple[str, ...]:
  """Flags of a train stage: SFT on an action after what was read before it.

  start, rows: names of earlier stages. prompt_tokens: of the longest row.
  """
  return (
    *('--config=configs/worlds/web_form.py', '--workdir={out}', '--method=sft'),
    f'--set=model.path={{{start}}}',
    f"--set=task=PreferenceRows(path='{{{rows}}}.jsonl')",
    *('--set=rollout.turns=null', '--set=rollout.recorded_prompts=64'),
    *('--set=rollout.num_prompts=64', '--set=rollout.group_size=1'),
    f'--set=rollout.max_prompt_tokens={prompt_tokens}',
    *('--set=rollout.max_response_tokens=3', f'--set=iterations={iterations}'),
    *('--set=evaluation.every=0', '--set=update.minibatch_prompts=64'),
    '--set=optimizer.learning_rate=2e-3',
  )
