"""Teach a tiny Llama a text, letter by letter, and let it go on with the beginning.

Needs transformers.
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

TEXT = "the quick brown fox jumps over the lazy dog. "


def main() -> None:
    torch.manual_seed(0)
    letters = sorted(set(TEXT))
    number = {letter: n for n, letter in enumerate(letters)}
    config = LlamaConfig(
        vocab_size=len(letters),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=None,
    )
    model = LlamaForCausalLM(config)
    tokens = torch.tensor([[number[letter] for letter in TEXT * 2]])
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(100):
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    start = tokens[:, :10]
    made = model.generate(start, attention_mask=torch.ones_like(start), max_new_tokens=34, do_sample=False)
    text = "".join(letters[n] for n in made[0].tolist())
    print(f"loss {loss.item():.3f}: {text}")
    assert text == TEXT[:44]


if __name__ == "__main__":
    main()
