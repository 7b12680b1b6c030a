"""Times TRL on the work of --stage=pairs and of --stage=turns, on CPU.

  VENV/bin/python -m experiments.benchmarks.trl_peer --stage=pairs --threads=2

The 8M model of the benchmark with random weights in float32. pairs: steps of
DPOTrainer on 32 pairs, prompts of 128 tokens and responses of 64, without
collating and logging. turns: `_generate` of GRPOTrainer with a tool, that is
the first turn and `_tool_call_loop`, on 64 rows with prompts of 64 tokens; a
turn has 8 tokens of the policy and 24 of the tool. parse_response is replaced
by one that always finds a call, and the chat template adds no token.

Prints one JSON line: medians of wall and CPU seconds, and the peak of memory.
Needs only trl and its requirements.
"""

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
from typing import Any

PAIRS, PAIR_PROMPT, RESPONSE = 32, 128, 64
ROWS, GROUP, PROMPT, POLICY, SAID = 64, 8, 64, 8, 24
TURNS = (8, 16)
EOS, PAD = '<eos>', '<pad>'
# Contents only: an observation of 24 bytes is 24 tokens.
TEMPLATE = (
  '{% for m in messages %}{% if m.tool_calls is defined and m.tool_calls %}'
  '{% for c in m.tool_calls %}{{ c.function }}{% endfor %}'
  '{% else %}{{ m.content }}{% endif %}{% endfor %}'
)


def make_tokenizer() -> Any:
  """A token a byte, and fillers up to the 512 of the model."""
  import tokenizers
  import transformers

  letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
  words = [*letters, PAD, EOS, *(f'<{i}>' for i in range(254))]
  made = tokenizers.Tokenizer(
    tokenizers.models.BPE({word: i for i, word in enumerate(words)}, merges=[])
  )
  made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
    add_prefix_space=False
  )
  made.decoder = tokenizers.decoders.ByteLevel()
  return transformers.PreTrainedTokenizerFast(
    tokenizer_object=made,
    pad_token=PAD,
    eos_token=EOS,
    padding_side='left',
    chat_template=TEMPLATE,
  )


def make_model(tokenizer: Any) -> Any:
  """The 8M model: preset 'small' of the benchmark, as Qwen3."""
  import torch
  import transformers

  config = transformers.Qwen3Config(
    vocab_size=512,
    hidden_size=256,
    intermediate_size=1024,
    num_hidden_layers=8,
    num_attention_heads=8,
    num_key_value_heads=4,
    head_dim=32,
    tie_word_embeddings=False,
    bos_token_id=None,
    eos_token_id=tokenizer.eos_token_id,
    pad_token_id=tokenizer.pad_token_id,
  )
  model = transformers.AutoModelForCausalLM.from_config(
    config, attn_implementation='sdpa'
  )
  return model.to(torch.float32)


def common(folder: str, **changes: Any) -> dict[str, Any]:
  """Arguments of both trainers."""
  return dict(
    output_dir=folder,
    use_cpu=True,
    bf16=False,
    learning_rate=1e-5,
    lr_scheduler_type='constant',
    weight_decay=0.0,
    max_grad_norm=1.0,
    save_strategy='no',
    report_to='none',
    disable_tqdm=True,
    **changes,
  )


def letters(rows: int, count: int) -> list[str]:
  """Random small letters, a token each."""
  import numpy as np

  codes = np.random.default_rng(count).integers(97, 123, (rows, count))
  return [bytes(row).decode() for row in codes.astype(np.uint8)]


def pairs(options: argparse.Namespace) -> dict[str, Any]:
  """Steps of DPOTrainer; the first is not counted."""
  import datasets
  import transformers
  import trl

  stamps = []

  class Stamps(transformers.TrainerCallback):
    def on_step_begin(self, *args, **kwargs):
      stamps.append((time.perf_counter(), time.process_time()))

    on_step_end = on_step_begin

  steps, tokenizer = options.repeats + 1, make_tokenizer()
  rows = PAIRS * steps
  data = {
    'prompt': letters(rows, PAIR_PROMPT),
    # An end token follows.
    'chosen': letters(rows, RESPONSE - 1),
    'rejected': letters(2 * rows, RESPONSE - 1)[rows:],
  }
  with tempfile.TemporaryDirectory() as folder:
    arguments = trl.DPOConfig(
      **common(
        folder,
        max_steps=steps,
        per_device_train_batch_size=options.micro,
        gradient_accumulation_steps=PAIRS // options.micro,
        gradient_checkpointing=options.recompute,
      )
    )
    trainer = trl.DPOTrainer(
      model=make_model(tokenizer),
      ref_model=make_model(tokenizer),
      args=arguments,
      train_dataset=datasets.Dataset.from_dict(data),
      processing_class=tokenizer,
      callbacks=[Stamps()],
    )
    shape = next(iter(trainer.get_train_dataloader()))['input_ids'].shape
    assert shape == (2 * options.micro, PAIR_PROMPT + RESPONSE), shape
    trainer.train()
  took = [
    [end - begin for begin, end in zip(*times, strict=True)]
    for times in zip(stamps[2::2], stamps[3::2], strict=True)
  ]
  wall, cpu = zip(*took, strict=True)
  return {
    'micro': options.micro,
    'recompute': options.recompute,
    'seconds_median': statistics.median(wall),
    'cpu_seconds_median': statistics.median(cpu),
  }


def look() -> str:
  """Says as much as always."""
  return 'o' * SAID


def turns(options: argparse.Namespace) -> dict[str, Any]:
  """Whole rollouts with the tool loop, by the number of turns."""
  import datasets
  import trl
  from trl.trainer import grpo_trainer

  call = {'type': 'function', 'function': {'name': 'look', 'arguments': {}}}
  message = {'role': 'assistant', 'content': '', 'tool_calls': [call]}
  grpo_trainer.parse_response = lambda *args, **kwargs: dict(message)
  tokenizer = make_tokenizer()
  tokenizer.response_template = {}  # of no use: nothing is parsed
  model = make_model(tokenizer)
  asked = [
    [{'role': 'user', 'content': text}]
    for text in letters(ROWS // GROUP, PROMPT)
    for _ in range(GROUP)
  ]
  wall, cpu = {}, {}
  for count in TURNS:
    size = count * (POLICY + SAID) - SAID
    with tempfile.TemporaryDirectory() as folder:
      trainer = trl.GRPOTrainer(
        model=model,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=trl.GRPOConfig(
          **common(
            folder,
            per_device_train_batch_size=ROWS,
            gradient_checkpointing=False,
            num_generations=GROUP,
            max_completion_length=size,
            max_tool_calling_iterations=count - 1,
            generation_kwargs={
              'max_new_tokens': POLICY,
              'min_new_tokens': POLICY,
            },
          )
        ),
        train_dataset=datasets.Dataset.from_dict({'prompt': asked}),
        processing_class=tokenizer,
        tools=[look],
      )
    # What a step of training sets before it calls _generate.
    trainer._sync_tool_dicts = [{'look': look}] * ROWS
    trainer._async_tool_dicts = [{}] * ROWS
    seconds = []
    for _ in range(options.repeats):
      started = time.perf_counter(), time.process_time()
      prompts, responses, masks, *_ = trainer._generate(asked)
      ended = time.perf_counter(), time.process_time()
      seconds.append([b - a for a, b in zip(started, ended, strict=True)])
      assert {len(ids) for ids in prompts} == {PROMPT}
      assert {len(ids) for ids in responses} == {size}
      assert {sum(mask) for mask in masks} == {count * POLICY}
    wall[count], cpu[count] = map(statistics.median, zip(*seconds, strict=True))
  return {'wall_seconds_by_turns': wall, 'seconds_by_turns': cpu}


def main():
  """One JSON line."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('--stage', choices=['pairs', 'turns'], required=True)
  parser.add_argument('--threads', type=int, default=2)
  parser.add_argument('--repeats', type=int, default=3)
  parser.add_argument(
    '--micro', type=int, default=PAIRS, help='pairs of a backward pass'
  )
  parser.add_argument(
    '--recompute', action='store_true', help='activations, as TRL by default'
  )
  options = parser.parse_args()
  os.environ |= {'HF_HUB_OFFLINE': '1', 'TOKENIZERS_PARALLELISM': 'false'}
  import torch
  import transformers
  import trl

  transformers.utils.logging.set_verbosity_error()
  torch.set_num_threads(options.threads)
  torch.manual_seed(0)
  found = {'pairs': pairs, 'turns': turns}[options.stage](options)
  line = {
    'system': 'TRL',
    'stage': options.stage,
    'threads': options.threads,
    'torch': torch.__version__,
    'transformers': transformers.__version__,
    'trl': trl.__version__,
    **found,
    'peak_memory_gb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
  }
  print(json.dumps(line))


if __name__ == '__main__':
  main()
