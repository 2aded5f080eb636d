"""transformers' models on a device: built from configurations there, run forward, trained one step, loaded and saved; as JSON.

    python meta_models.py {meta,cpu}

Plain torch and transformers. With "cpu" the sizes are small; with "meta" Llama's 7 and 405 billion parameters are built as well. The shapes of the
small models are those of PyTorch on the CPU.
"""

import json
import sys
import tempfile
import warnings

import torch
import transformers as t

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 100,
}
MODELS = {
    "bert": (t.AutoModelForMaskedLM, t.BertConfig(**SMALL)),
    "albert": (t.AutoModelForMaskedLM, t.AlbertConfig(embedding_size=16, **SMALL)),
    "gpt2": (t.AutoModelForCausalLM, t.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=100)),
    "llama": (t.AutoModelForCausalLM, t.LlamaConfig(num_key_value_heads=2, **SMALL)),
    "t5": (
        t.AutoModelForSeq2SeqLM,
        t.T5Config(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=100, decoder_start_token_id=0),
    ),
}
LARGE = {
    "llama-7b": t.LlamaConfig(
        hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32, vocab_size=32000
    ),
    "llama-405b": t.LlamaConfig(
        hidden_size=16384,
        intermediate_size=53248,
        num_hidden_layers=126,
        num_attention_heads=128,
        num_key_value_heads=8,
        vocab_size=128256,
    ),
}


def forward(auto, config, where, labels):
    """Shapes of the outputs, and of the gradients that a loss gives; every tensor must be on the device."""
    config._attn_implementation = "eager"  # the others ask a mask for its values
    with torch.device(where):
        model = auto.from_config(config)
        ids, mask = torch.ones(2, 7, dtype=torch.long), torch.ones(2, 7, dtype=torch.long)
        inputs = {"decoder_input_ids": torch.ones(2, 5, dtype=torch.long)} if auto is t.AutoModelForSeq2SeqLM else {}
        if labels:
            inputs = {"labels": torch.ones(2, 5 if inputs else 7, dtype=torch.long)}
        out = model(ids, attention_mask=mask, **inputs)
    found = {name: list(value.shape) for name, value in out.items() if isinstance(value, torch.Tensor)}
    placed = [*model.parameters(), *model.buffers(), out.logits]
    if labels:
        out.loss.backward()
        grads = [p.grad for p in model.parameters()]
        assert all(g.shape == p.shape for g, p in zip(grads, model.parameters()))
        placed += grads
    assert {x.device.type for x in placed} == {where}
    return {"parameters": sum(p.numel() for p in model.parameters()), **found}


def loading():
    """What from_pretrained makes of a small model that was saved; it builds the model on meta first."""
    auto, config = MODELS["llama"]
    with tempfile.TemporaryDirectory() as folder:
        saved = auto.from_config(config)
        saved.save_pretrained(folder)
        for keywords in ({}, {"low_cpu_mem_usage": True}):
            loaded = auto.from_pretrained(folder, **keywords)
            assert {x.device.type for x in (*loaded.parameters(), *loaded.buffers())} == {"cpu"}
            assert all(torch.equal(a, b) for a, b in zip(saved.parameters(), loaded.parameters()))
        assert auto.from_pretrained(folder, dtype=torch.float16).lm_head.weight.dtype is torch.float16
        with torch.device("meta"):
            empty = auto.from_config(config)
            try:
                auto.from_pretrained(folder)
            except RuntimeError as error:
                refused = str(error).split(" as ")[0]
        empty.load_state_dict(saved.state_dict(), assign=True)
        assert {p.device.type for p in empty.parameters()} == {"cpu"}
    return refused


def main(where):
    warnings.simplefilter("ignore")
    t.logging.set_verbosity_error()
    found = {name: forward(*model, where, False) for name, model in MODELS.items()}
    found |= {f"{name}, trained": forward(*model, where, True) for name, model in MODELS.items()}
    if where == "meta":
        found |= {name: forward(t.AutoModelForCausalLM, config, where, False) for name, config in LARGE.items()}
        found["loading"] = loading()
    print(json.dumps(found))


main(sys.argv[1])
