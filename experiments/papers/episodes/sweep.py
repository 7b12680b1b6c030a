"""Methods that give credit to turns, on one grid of KeyDoor.

export XLA_FLAGS=--xla_backend_optimization_level=0
export JAX_COMPILATION_CACHE_DIR=runs/compiled
python -m experiments.sweep --paper=episodes --jitted --by_stages
  --workdir=runs/episodes
python -m experiments.table --workdir=runs/episodes --comparison
  --excerpt=experiments/papers/episodes/results.jsonl
python -m experiments.table --paper=episodes --update

The grid is one whose shortest solution has four actions, so that a policy that
begins with random letters finds it in sixty iterations, in seconds of a core.
"""

from experiments.sweeps import runs as sweep_runs

BASELINE = 'method=grpo'
METHODS = ('grpo', 'gigpo', 'salt', 'turn_rloo', 'rloo', 'epo', 'turn_ppo')
SETTING = {
  'task.seed': 58,
  'task.num_train': 1,
  'model.config.num_layers': 1,
  'model.config.width': 32,
  'model.config.num_heads': 2,
  'model.config.num_kv_heads': 2,
  'model.config.mlp_size': 64,
  'rollout.num_prompts': 4,
  'rollout.turns.max_turns': 10,
  'rollout.max_response_tokens': 50,
  'update.minibatch_prompts': 2,
  'optimizer.learning_rate': 3e-3,
  'iterations': 60,
}
SEEDS = 5


def get_sweep() -> list[sweep_runs.Setting]:
  """Methods x seeds."""
  return sweep_runs.equal_conditions('keydoor', METHODS, SETTING, SEEDS)
