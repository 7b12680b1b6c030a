"""RLVR of Tulu 3: PPO with verifiable rewards, Llama-3.1-Tulu-3-8B."""
