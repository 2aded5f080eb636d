"""A use of each library, for an environment into which it was installed as its users do: `python installed.py NAME`. Each fails where something is not as it should be."""

from __future__ import annotations

import io
import sys
import tempfile

import torch

nn, F = torch.nn, torch.nn.functional


def falls(module, loss, steps=5, rate=0.05) -> None:
    """Train, and see the loss fall."""
    optimizer = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], rate)
    losses = []
    for _ in range(steps):
        value = loss()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    assert losses[-1] < losses[0], losses


def tiny_bert():
    import transformers

    return transformers.BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, vocab_size=30
    )


def sentence_transformers() -> None:
    import tokenizers
    import transformers
    from sentence_transformers import SentenceTransformer, models, util

    folder = tempfile.mkdtemp()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"the a cat dog sat ran on mat hill fast slow red".split()]
    tokens = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokens.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokens, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    transformers.BertModel(tiny_bert()).save_pretrained(folder)
    model = SentenceTransformer(modules=[models.Transformer(folder), models.Pooling(16)], device="cpu")
    sentences = ["the cat sat on mat", "a dog ran fast", "the red hill"]
    found = model.encode(sentences, convert_to_tensor=True)
    assert util.cos_sim(found, found).diagonal().allclose(torch.ones(3), atol=1e-5)
    assert util.semantic_search(found[:1], found, top_k=1)[0][0]["corpus_id"] == 0
    features = model.tokenize(sentences)
    model.eval()
    falls(model, lambda: 1 - F.cosine_similarity(*model(dict(features))["sentence_embedding"][:2], dim=0))
    model.save(folder + "/saved")
    again = SentenceTransformer(folder + "/saved", device="cpu")
    assert again.encode(sentences, convert_to_tensor=True).equal(model.encode(sentences, convert_to_tensor=True))


def accelerate() -> None:
    from accelerate import Accelerator, init_empty_weights

    accelerator = Accelerator(cpu=True)
    module = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    x = torch.randn(16, 4)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long()), 4)
    module, optimizer, loader = accelerator.prepare(module, optimizer, loader)
    losses = []
    for _ in range(4):
        for inputs, targets in loader:
            value = F.cross_entropy(module(inputs), targets)
            accelerator.backward(value)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(value.item())
    assert sum(losses[-4:]) < sum(losses[:4])
    folder = tempfile.mkdtemp()
    accelerator.save_state(folder)
    accelerator.load_state(folder)
    with init_empty_weights():
        assert nn.Linear(3, 3).weight.is_meta


def peft() -> None:
    import peft
    import transformers

    torch.manual_seed(0)
    adapter = peft.LoraConfig(r=4, target_modules=["query", "value"], task_type="SEQ_CLS")
    model = peft.get_peft_model(transformers.BertForSequenceClassification(tiny_bert()), adapter).eval()
    ids, labels = torch.arange(12).reshape(2, 6) + 5, torch.tensor([0, 1])
    falls(model, lambda: model(input_ids=ids, labels=labels).loss)
    folder = tempfile.mkdtemp()
    model.save_pretrained(folder)
    torch.manual_seed(0)
    again = peft.PeftModel.from_pretrained(transformers.BertForSequenceClassification(tiny_bert()), folder).eval()
    logits = model(input_ids=ids).logits
    assert again(input_ids=ids).logits.allclose(logits, atol=1e-5)
    assert again.merge_and_unload()(input_ids=ids).logits.allclose(logits, atol=1e-5)


def diffusers() -> None:
    from diffusers import DDIMScheduler, UNet2DModel

    blocks = {"down_block_types": ("DownBlock2D", "DownBlock2D"), "up_block_types": ("UpBlock2D", "UpBlock2D")}
    model = UNet2DModel(sample_size=8, layers_per_block=1, block_out_channels=(8, 8), norm_num_groups=4, **blocks)
    scheduler, clean = DDIMScheduler(100), torch.randn(2, 3, 8, 8)
    noise, times = torch.randn_like(clean), torch.tensor([10, 60])
    falls(model, lambda: F.mse_loss(model(scheduler.add_noise(clean, noise, times), times).sample, noise))
    scheduler.set_timesteps(2)
    image = noise
    with torch.no_grad():
        for time in scheduler.timesteps:
            image = scheduler.step(model(image, time).sample, time, image).prev_sample
    assert image.isfinite().all()


def torchmetrics() -> None:
    from torchmetrics import Accuracy

    metric = Accuracy("multiclass", num_classes=3)
    metric.update(torch.eye(3)[[0, 1, 2, 2]], torch.tensor([0, 1, 2, 0]))
    assert metric.compute() == 0.75


def lightning() -> None:
    import lightning as module

    class Model(module.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer, self.losses = nn.Linear(4, 2), []

        def training_step(self, batch, number):
            value = F.cross_entropy(self.layer(batch[0]), batch[1])
            self.losses.append(value.item())
            return value

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    x = torch.randn(32, 4)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long()), 8)
    model, folder = Model(), tempfile.mkdtemp()
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = module.Trainer(max_epochs=4, accelerator="cpu", default_root_dir=folder, **quiet)
    trainer.fit(model, loader)
    assert sum(model.losses[-4:]) < sum(model.losses[:4])
    trainer.save_checkpoint(folder + "/a.ckpt")
    assert Model.load_from_checkpoint(folder + "/a.ckpt").layer.weight.equal(model.layer.weight)


def einops() -> None:
    from einops import rearrange

    assert rearrange(torch.arange(6).reshape(2, 3), "a b -> (b a)").tolist() == [0, 3, 1, 4, 2, 5]


def timm() -> None:
    import timm

    model = timm.create_model("resnet10t", num_classes=3).eval()
    x = torch.randn(2, 3, 32, 32)
    falls(model, lambda: F.cross_entropy(model(x), torch.tensor([0, 2])), rate=0.001)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    again = timm.create_model("resnet10t", num_classes=3).eval()
    again.load_state_dict(torch.load(file))
    assert again(x).equal(model(x))


def kornia() -> None:
    import kornia

    x = torch.rand(1, 3, 8, 8, requires_grad=True)
    assert kornia.geometry.hflip(kornia.geometry.hflip(x)).equal(x)
    kornia.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0)).sum().backward()
    assert x.grad.shape == x.shape


if __name__ == "__main__":
    assert torch.__version__ == "2.13.0+mindtorch", torch.__version__
    torch.manual_seed(0)
    globals()[sys.argv[1].replace("-", "_")]()
    print("as it should be")
