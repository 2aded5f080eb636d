"""Run by several ranks, with a folder: transformers' Llama under `tp_plan="auto"` gives the loss, the logits and the gradients of the model on one rank."""

import sys

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from transformers import LlamaConfig, LlamaForCausalLM

dist.init_process_group("gloo")
folder = sys.argv[1]
if dist.get_rank() == 0:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    LlamaForCausalLM(
        LlamaConfig(vocab_size=32, num_key_value_heads=2, max_position_embeddings=32, **sizes)
    ).save_pretrained(folder)
dist.barrier()
plain, parallel = LlamaForCausalLM.from_pretrained(folder), LlamaForCausalLM.from_pretrained(folder, tp_plan="auto")
assert isinstance(parallel.model.layers[0].self_attn.q_proj.weight, DTensor)
tokens = torch.randint(0, 32, (2, 8), generator=torch.Generator().manual_seed(1))
results = [model(tokens, labels=tokens) for model in (plain, parallel)]
torch.testing.assert_close(results[1].logits, results[0].logits, rtol=1e-5, atol=1e-6)
for result in results:
    result.loss.backward()
for (name, one), other in zip(parallel.named_parameters(), plain.parameters()):
    found = one.grad.full_tensor() if isinstance(one.grad, DTensor) else one.grad
    torch.testing.assert_close(found, other.grad, rtol=1e-5, atol=1e-6, msg=name)
dist.destroy_process_group()
print("ok")
