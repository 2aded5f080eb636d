"""Train a tiny language model by LoRA: a few thousand numbers learn a sentence, the model's own stay.

Needs transformers and peft.
"""

import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel


def main() -> None:
    torch.manual_seed(0)
    base = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=64,
            n_positions=32,
            n_embd=32,
            n_layer=2,
            n_head=2,
            initializer_range=0.3,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    model = get_peft_model(
        base, LoraConfig(r=8, lora_alpha=32, target_modules=["c_attn", "c_proj", "c_fc"], lora_dropout=0.0)
    )
    trained = [p for p in model.parameters() if p.requires_grad]
    frozen = {name: p.clone() for name, p in model.named_parameters() if not p.requires_grad}
    optimizer = torch.optim.AdamW(trained, lr=0.003)
    tokens = torch.randint(1, 64, (1, 16))
    first = last = 0.0
    for step in range(80):
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        first, last = first or loss.item(), loss.item()
        if step % 20 == 0:
            print(f"step {step:2d}  loss {loss.item():.3f}")
    print(
        f"{sum(p.numel() for p in trained):,} numbers of {sum(p.numel() for p in model.parameters()):,} were trained: loss {first:.3f} to {last:.3f}"
    )
    assert last < first / 2
    assert all(torch.equal(frozen[name], p) for name, p in model.named_parameters() if name in frozen)


if __name__ == "__main__":
    main()
