"""A two-layer BertModel made from a seed: its weights, outputs and gradients, written to an .npz file.

    python bert_gradients.py {eager,sdpa} out.npz

Plain torch and transformers: run with PyTorch it records, run through the proxy it is compared.
"""

import sys

import numpy as np
import torch
from transformers import BertConfig, BertModel


def main(attention: str, path: str) -> None:
    config = BertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        vocab_size=120,
        max_position_embeddings=40,
        attn_implementation=attention,
    )
    torch.manual_seed(0)
    model = BertModel(config)
    ids = torch.randint(0, 120, (3, 10))
    mask = torch.ones(3, 10, dtype=torch.long)
    mask[1, 7:] = 0
    torch.manual_seed(1)
    model.train()
    out = model(input_ids=ids, attention_mask=mask)
    loss = out.pooler_output.sum() + (out.last_hidden_state**2).mean()
    loss.backward()
    found = {"ids": ids.numpy(), "loss": loss.detach().numpy(), "hidden": out.last_hidden_state.detach().numpy()}
    for name, parameter in model.named_parameters():
        found[f"weight/{name}"] = parameter.detach().numpy()
        found[f"grad/{name}"] = parameter.grad.numpy()
    np.savez_compressed(path, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
