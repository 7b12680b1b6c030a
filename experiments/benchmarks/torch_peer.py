"""Times the peers of a cell: transformers generate, and a plain torch update.

  python -m experiments.benchmarks.torch_peer --preset=tiny --stage=update
    --num_prompts=2 --group_size=4

Random weights of the same shape, bfloat16 (the update: float32 weights under
autocast, fused AdamW), scaled-dot-product attention. Every row carries its own
copy of the prompt. Needs only torch and transformers, so that it can run in a
separate environment.
"""

import argparse
import json
import statistics
import time

_SIZES = (
  'vocab_size',
  'hidden_size',
  'intermediate_size',
  'num_hidden_layers',
  'num_attention_heads',
  'num_key_value_heads',
)


def _sizes(*numbers: int) -> dict[str, int]:
  return dict(zip(_SIZES, numbers, strict=True))


MODELS = {
  'qwen2p5_1p5b': ('Qwen2Config', _sizes(151936, 1536, 8960, 28, 12, 2)),
  'qwen2p5_0p5b': ('Qwen2Config', _sizes(151936, 896, 4864, 24, 14, 2)),
  'smollm2_135m': ('LlamaConfig', _sizes(49152, 576, 1536, 30, 9, 3)),
  'tiny': ('LlamaConfig', _sizes(64, 128, 512, 4, 4, 4)),
}


def unavailable(preset: str) -> str | None:
  """Why this cannot be measured here, or None; CPUs run the tiny model."""
  try:
    import torch
    import transformers  # noqa: F401
  except ImportError as error:
    return f'{error.name} is not installed'
  if not torch.cuda.is_available() and preset != 'tiny':
    return f'torch {torch.__version__} sees no CUDA device'
  return None


def _model(preset, dtype):
  import torch
  import transformers

  name, sizes = MODELS[preset]
  config = getattr(transformers, name)(
    **sizes,
    tie_word_embeddings=True,
    bos_token_id=None,
    eos_token_id=None,
    pad_token_id=0,
    attn_implementation='sdpa',
  )
  device = 'cuda' if torch.cuda.is_available() else 'cpu'
  with torch.device(device):
    model = transformers.AutoModelForCausalLM.from_config(config)
  return model.to(dtype), device


def _seconds(function, repeats, device):
  import torch

  times = []
  for _ in range(repeats + 1):
    started = time.perf_counter()
    function()
    if device == 'cuda':
      torch.cuda.synchronize()
    times.append(time.perf_counter() - started)
  return statistics.median(times[1:])


def generate(preset: str, shape: argparse.Namespace) -> float:
  """Seconds of model.generate with sampling and its default cache."""
  import torch

  model, device = _model(preset, torch.bfloat16)
  ids = torch.randint(
    1, 64, (shape.num_prompts, shape.prompt_tokens), device=device
  ).repeat_interleave(shape.group_size, 0)
  options = dict(do_sample=True, top_k=0, top_p=1.0, temperature=1.0)

  @torch.no_grad()
  def once():
    model.generate(
      ids,
      attention_mask=torch.ones_like(ids),
      max_new_tokens=shape.new_tokens,
      min_new_tokens=shape.new_tokens,
      **options,
    )

  return _seconds(once, shape.repeats, device)


def update(preset: str, shape: argparse.Namespace) -> float:
  """Seconds of a policy-gradient step with AdamW."""
  import torch

  model, device = _model(preset, torch.float32)
  P, T, B = shape.prompt_tokens, shape.new_tokens, shape.rows
  ids = torch.randint(1, 64, (B, P + T), device=device)
  advantage = torch.randn(B, 1, device=device)
  optimizer = torch.optim.AdamW(
    model.parameters(), lr=1e-6, fused=device == 'cuda'
  )

  def once():
    optimizer.zero_grad(set_to_none=True)
    for rows in torch.arange(B, device=device).split(
      min(B // shape.microbatches, 16)
    ):
      with torch.autocast(device, torch.bfloat16):
        # Logits of the positions that predict the response.
        logits = model(
          input_ids=ids[rows], use_cache=False, logits_to_keep=T + 1
        ).logits[:, :-1]
      logp = torch.log_softmax(logits.float(), -1)
      logp = logp.gather(-1, ids[rows, P:, None]).squeeze(-1)
      ratio = torch.exp(logp - logp.detach())
      (-(ratio * advantage[rows]).sum() / (B * T)).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

  return _seconds(once, shape.repeats, device)


def measure(shape: argparse.Namespace) -> dict:
  """Seconds and tokens/s, or the reason why there are none."""
  reason = unavailable(shape.preset)
  if reason:
    return {'skipped': reason}
  import torch
  import transformers

  function = generate if shape.stage == 'generate' else update
  seconds = function(shape.preset, shape)
  cuda = torch.cuda.is_available()
  return {
    'device': torch.cuda.get_device_name() if cuda else 'cpu',
    'torch': torch.__version__,
    'transformers': transformers.__version__,
    'seconds_median': seconds,
    'generated_tokens_per_second': shape.rows * shape.new_tokens / seconds,
  }


def main():
  """One JSON line, also appended to --out."""
  parser = argparse.ArgumentParser(
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument('--preset', choices=MODELS, required=True)
  parser.add_argument('--stage', choices=['generate', 'update'], required=True)
  parser.add_argument('--out')
  numbers = dict(
    num_prompts=8,
    group_size=8,
    prompt_tokens=128,
    new_tokens=128,
    microbatches=1,
    repeats=3,
  )
  for name, value in numbers.items():
    parser.add_argument(f'--{name}', type=int, default=value)
  shape = parser.parse_args()
  shape.rows = shape.num_prompts * shape.group_size
  row = {k: v for k, v in vars(shape).items() if k != 'out'}
  line = json.dumps({'system': 'torch', **row, **measure(shape)})
  print(line)
  if shape.out:
    with open(shape.out, 'a', encoding='utf-8') as file:
      file.write(line + '\n')


if __name__ == '__main__':
  main()
