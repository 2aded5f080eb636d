"""Small transformers models, forward, backward and a few generated tokens, on the CPU and on an NPU: prints the largest differences as JSON.

Run under the proxy: `python -m mindtorch_v2 tests/npu/models.py`.
"""

import json

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageClassification,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    BartConfig,
    BertConfig,
    DebertaV2Config,
    GPT2Config,
    LlamaConfig,
    MambaConfig,
    MixtralConfig,
    T5Config,
    ViTConfig,
)

SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99}
BART = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 64))
}
MODELS = [
    (BertConfig(**SIZES), AutoModelForMaskedLM),
    (LlamaConfig(**SIZES, num_key_value_heads=2), AutoModelForCausalLM),
    (GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=99), AutoModelForCausalLM),
    (T5Config(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=99, decoder_start_token_id=0), AutoModelForSeq2SeqLM),
    (BartConfig(d_model=32, vocab_size=99, **BART), AutoModelForSeq2SeqLM),
    (MixtralConfig(**SIZES, num_key_value_heads=2, num_local_experts=4), AutoModelForCausalLM),
    (MambaConfig(hidden_size=32, num_hidden_layers=2, vocab_size=99, state_size=4), AutoModelForCausalLM),
    (DebertaV2Config(**SIZES, relative_attention=True, pos_att_type=["p2c", "c2p"], type_vocab_size=0), AutoModelForMaskedLM),
    (ViTConfig(**{k: v for k, v in SIZES.items() if k != "vocab_size"}, image_size=16, patch_size=8), AutoModelForImageClassification),
]  # fmt: skip


def inputs(model) -> dict:
    generator = torch.Generator().manual_seed(1)
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.randn(2, 3, 16, 16, generator=generator), "labels": torch.tensor([0, 1])}
    ids = torch.randint(5, 90, (2, 7), generator=generator)
    mask = torch.ones(2, 7, dtype=torch.int64)
    mask[1, 5:] = 0
    return {"input_ids": ids, "labels": ids.clone(), "attention_mask": mask}


def outcome(model, device: str) -> tuple:
    """(loss, logits, gradients, tokens)."""
    model.to(device).zero_grad()
    given = {name: value.to(device) for name, value in inputs(model).items()}
    result = model(**given)
    result.loss.backward()
    gradients = [p.grad.cpu().clone() for p in model.parameters() if p.grad is not None]
    tokens = []
    if model.can_generate():
        tokens = model.generate(given["input_ids"][:1], max_new_tokens=4, do_sample=False).tolist()
    return result.loss.item(), result.logits.detach().cpu(), gradients, tokens


def main() -> None:
    found = {}
    for config, auto in MODELS:
        torch.manual_seed(0)
        model = auto.from_config(config).eval()
        loss, logits, gradients, tokens = outcome(model, "cpu")
        loss_there, logits_there, gradients_there, tokens_there = outcome(model, "npu")
        scale = max(float(a.abs().max()) for a in gradients)
        gradient = max(float((a - b).abs().max()) for a, b in zip(gradients, gradients_there, strict=True)) / scale
        found[type(config).__name__] = {
            "loss": abs(loss - loss_there),
            "logits": float((logits - logits_there).abs().max()),
            "gradients": gradient,
            "tokens": tokens == tokens_there,
        }
    print("DIFFERENCES", json.dumps(found))


if __name__ == "__main__":
    main()
