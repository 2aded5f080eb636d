"""What a training step of a Llama of 70 billion parameters takes, planned in a moment and without its memory.

Needs transformers.
"""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from mindtorch_v2 import plan


def main() -> None:
    config = LlamaConfig(
        hidden_size=8192,
        intermediate_size=28672,
        num_hidden_layers=80,
        num_attention_heads=64,
        num_key_value_heads=8,
        vocab_size=128256,
        use_cache=False,
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    tokens = torch.ones(1, 2048, dtype=torch.int64)
    made = plan(model, input_ids=tokens, labels=tokens, backward=True)
    print(made.table(depth=1, rows=6))
    for path in sys.argv[1:]:  # a page with the memory over the step's course
        with open(path, "w", encoding="utf-8") as f:
            f.write(made.to_html())
    assert 70e9 < made.parameters < 71e9
    # A multiplication and an addition for every weight and token, and the attention's own.
    assert made.flops > 2 * (made.parameters - config.vocab_size * config.hidden_size) * tokens.numel()
    assert made.peak > 2 * made.parameter_bytes  # the weights and their gradients


if __name__ == "__main__":
    main()
