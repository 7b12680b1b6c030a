"""NFT and DAPO on Qwen2.5-Math-7B and Qwen2.5-32B: six benchmarks."""
