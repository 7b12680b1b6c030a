"""GiGPO on ALFWorld, Qwen2.5-1.5B-Instruct and 7B-Instruct."""
