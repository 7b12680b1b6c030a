"""SimPO and its baselines on UltraFeedback, Mistral-7B and Llama-3-8B."""
