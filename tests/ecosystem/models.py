# ruff: noqa: B023 (a loss is computed within its round of the loop)
"""What people do with libraries over torch, as small programs, models: each gives tensors, which must be PyTorch's from the same seed."""

from __future__ import annotations

import tempfile

import torch
from steps import saved, train

nn, F = torch.nn, torch.nn.functional


def timm() -> list:
    """Image classifiers, and its optimizers."""
    import timm

    out = []
    for name in ("resnet10t", "vit_tiny_patch16_224", "mobilenetv3_small_050", "convnext_atto", "efficientnet_b0"):
        kw = dict(img_size=96, patch_size=32) if "vit" in name else {}
        m = timm.create_model(name, num_classes=4, **kw).train()
        x = torch.randn(4, 3, 96, 96)
        out += train(
            m, lambda: F.cross_entropy(m(x), torch.tensor([1, 2, 0, 3])), 1, lambda ps: torch.optim.SGD(ps, 0.01)
        )
        out.append(saved(m).eval()(x))
    from timm.optim import create_optimizer_v2

    for o in ("lamb", "adamp", "lion", "madgrad", "adafactor", "nadamw"):
        m = nn.Linear(4, 4)
        out += train(
            m, lambda: m(torch.ones(2, 4)).square().mean(), 3, lambda ps: create_optimizer_v2(ps, opt=o, lr=0.01)
        )
    return out


def peft() -> list:
    """Adapters of a BERT, trained; LoRA merged."""
    import peft
    import transformers

    cfg = transformers.BertConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, vocab_size=50
    )
    out = []
    ids = torch.randint(0, 50, (2, 7))
    y = torch.tensor([0, 1])
    for c in (
        peft.LoraConfig(r=4, target_modules=["query", "value"], task_type="SEQ_CLS"),
        peft.LoraConfig(r=4, use_dora=True, target_modules=["query"], task_type="SEQ_CLS"),
        peft.IA3Config(target_modules=["key", "value"], feedforward_modules=[], task_type="SEQ_CLS"),
        peft.PrefixTuningConfig(num_virtual_tokens=3, task_type="SEQ_CLS"),
        peft.LoHaConfig(r=2, target_modules=["query"], task_type="SEQ_CLS"),
        peft.AdaLoraConfig(init_r=4, target_r=2, total_step=10, target_modules=["query"], task_type="SEQ_CLS"),
        peft.OFTConfig(r=0, oft_block_size=4, target_modules=["query"], task_type="SEQ_CLS"),
        peft.VeraConfig(r=4, target_modules=["query"], task_type="SEQ_CLS"),
        peft.PromptTuningConfig(num_virtual_tokens=3, task_type="SEQ_CLS"),
        peft.BOFTConfig(boft_block_size=4, target_modules=["query"], task_type="SEQ_CLS"),
    ):
        torch.manual_seed(1)
        m = peft.get_peft_model(transformers.BertForSequenceClassification(cfg), c).eval()
        out += train(
            m, lambda: m(input_ids=ids, labels=y).loss, 3, params=[p for p in m.parameters() if p.requires_grad]
        )
        out += [m(input_ids=ids).logits]
        if type(c).__name__ == "LoraConfig":
            mm = m.merge_and_unload()
            out.append(mm(input_ids=ids).logits)
    return out


def diffusers() -> list:
    """A UNet trained to denoise, four schedulers, an autoencoder, a conditional UNet."""
    from diffusers import (
        AutoencoderKL,
        DDIMScheduler,
        DDPMScheduler,
        DPMSolverMultistepScheduler,
        EulerDiscreteScheduler,
        UNet2DConditionModel,
        UNet2DModel,
    )

    u = UNet2DModel(
        sample_size=8,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    s = DDPMScheduler(10)
    x = torch.randn(2, 3, 8, 8)
    n = torch.randn_like(x)
    t = torch.tensor([1, 5])
    out = train(u, lambda: F.mse_loss(u(s.add_noise(x, n, t), t).sample, n))
    for S in (DDPMScheduler, DDIMScheduler, EulerDiscreteScheduler, DPMSolverMultistepScheduler):
        s = S(num_train_timesteps=100)
        s.set_timesteps(4)
        y = x.clone()
        g = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for tt in s.timesteps:
                i = s.scale_model_input(y, tt)
                e = u(i, tt).sample
                y = s.step(e, tt, y, **{"generator": g} if S not in (DPMSolverMultistepScheduler,) else {}).prev_sample
        out.append(y)
    v = AutoencoderKL(block_out_channels=(8,), norm_num_groups=4, latent_channels=2)
    out.append(v(x, sample_posterior=False).sample)
    c = UNet2DConditionModel(
        sample_size=8,
        in_channels=2,
        out_channels=2,
        layers_per_block=1,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        cross_attention_dim=6,
        attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )
    h = torch.randn(2, 5, 6)
    z = torch.randn(2, 2, 8, 8)
    out += train(c, lambda: c(z, 3, h).sample.square().mean())
    return out


def x_transformers() -> list:
    """A decoder trained and generating, an encoder."""
    from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper

    m = TransformerWrapper(
        num_tokens=20, max_seq_len=16, attn_layers=Decoder(dim=16, depth=2, heads=2, rotary_pos_emb=True)
    )
    ids = torch.randint(0, 20, (2, 10))
    a = AutoregressiveWrapper(m)
    out = train(a, lambda: a(ids))
    a.eval()
    out.append(a.generate(ids[:, :3], 5, temperature=0.0).float())
    e = TransformerWrapper(
        num_tokens=20, max_seq_len=16, attn_layers=Encoder(dim=16, depth=1, heads=2, alibi_pos_bias=True, ff_glu=True)
    )
    out += train(e, lambda: e(ids).square().mean())
    return out


def vector_quantize_pytorch() -> list:
    """Quantizers with their losses."""
    from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize

    x = torch.randn(2, 12, 8, requires_grad=True)
    out = []
    for q in (
        VectorQuantize(dim=8, codebook_size=16, decay=0.8),
        ResidualVQ(dim=8, num_quantizers=2, codebook_size=16),
        FSQ([4, 4], dim=8),
        LFQ(dim=8, codebook_size=16, entropy_loss_weight=0.1),
    ):
        r = q(x)
        y = r[0]
        out += [y, r[1].float()]
        y.square().sum().backward()
    return [*out, x.grad]


def monai() -> list:
    """Segmentation: networks, losses, transforms, metrics."""
    from monai.inferers import sliding_window_inference
    from monai.losses import DiceCELoss, DiceLoss, FocalLoss
    from monai.metrics import DiceMetric
    from monai.networks.nets import SegResNet, UNet
    from monai.transforms import Compose, GaussianSmooth, Resize, ScaleIntensity

    m = UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8), strides=(2,), num_res_units=1)
    x = torch.rand(1, 1, 16, 16)
    y = (x > 0.5).float()
    out = train(m, lambda: DiceLoss(to_onehot_y=True, softmax=True)(m(x), y))
    out += train(m, lambda: DiceCELoss(to_onehot_y=True, softmax=True)(m(x), y))
    out.append(FocalLoss()(m(x)[:, :1], y))
    out.append(sliding_window_inference(torch.rand(1, 1, 24, 24), (16, 16), 2, m.eval()))
    s = SegResNet(spatial_dims=2, init_filters=8, in_channels=1, out_channels=2, blocks_down=(1, 1), blocks_up=(1,))
    out += train(s, lambda: s(x).square().mean())
    out.append(torch.as_tensor(Compose([ScaleIntensity(), GaussianSmooth(1.0), Resize((8, 8))])(x[0])))
    dm = DiceMetric()
    dm(y, y)
    out.append(dm.aggregate())
    return out


def segmentation_models_pytorch() -> list:
    """Segmentation models over one encoder."""
    import segmentation_models_pytorch as smp

    out = []
    for A in (smp.Unet, smp.FPN, smp.DeepLabV3Plus, smp.Linknet):
        torch.manual_seed(0)
        m = A("resnet18", encoder_weights=None, classes=2)
        x = torch.randn(2, 3, 64, 64)
        y = torch.randint(0, 2, (2, 64, 64))
        # The first step of Adam goes by signs, those of gradients that are zero but for rounding too.
        out += train(m, lambda: smp.losses.DiceLoss("multiclass")(m(x), y), 2, lambda ps: torch.optim.SGD(ps, 0.01))
    return out


def open_clip() -> list:
    """A tiny CLIP, trained by its loss."""
    import open_clip

    m = open_clip.model.CLIP(
        embed_dim=16,
        vision_cfg=dict(image_size=32, layers=1, width=16, patch_size=16, head_width=8),
        text_cfg=dict(context_length=8, vocab_size=50, width=16, heads=2, layers=1),
    )
    i = torch.randn(3, 3, 32, 32)
    t = torch.randint(1, 50, (3, 8))
    module = open_clip.ClipLoss()

    def value():
        a, b, s = m(i, t)
        return module(a, b, s)

    return train(m, value)


def sentence_transformers() -> list:
    """A tiny model: encoded, compared, trained by loss and by its Trainer, saved."""
    import transformers
    from sentence_transformers import SentenceTransformer, losses, models, util

    d = tempfile.mkdtemp()
    open(d + "/vocab.txt", "w").write(
        "\n".join(
            ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + "the a cat dog sat ran on mat hill fast slow red".split()
        )
    )
    tok = transformers.BertTokenizer(d + "/vocab.txt")
    torch.manual_seed(0)
    b = transformers.BertModel(
        transformers.BertConfig(
            hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, vocab_size=17
        )
    )
    b.save_pretrained(d)
    tok.save_pretrained(d)
    w = models.Transformer(d)
    m = SentenceTransformer(modules=[w, models.Pooling(16)], device="cpu")
    S = ["the cat sat on mat", "a dog ran fast", "the red hill", "a slow cat"]
    e = m.encode(S, convert_to_tensor=True)
    out = [
        e,
        util.cos_sim(e, e),
        torch.tensor([h["score"] for h in util.semantic_search(e[:1], e, top_k=3)[0]]),
        torch.tensor([s for s, _, _ in util.paraphrase_mining(m, S)]),
        m.similarity(e, e),
    ]
    import datasets

    ds = datasets.Dataset.from_dict({"anchor": S, "positive": S[1:] + S[:1]})
    module = losses.MultipleNegativesRankingLoss(m)
    m.eval()
    out += train(m, lambda: module([m.tokenize(S), m.tokenize(S[1:] + S[:1])], None))
    from sentence_transformers import SentenceTransformerTrainer as T, SentenceTransformerTrainingArguments as A

    t = T(
        model=m,
        args=A(
            output_dir=d + "/o",
            num_train_epochs=1,
            per_device_train_batch_size=2,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
            seed=3,
        ),
        train_dataset=ds,
        loss=module,
    )
    r = t.train()
    out.append(torch.tensor(r.training_loss))
    m.save(d + "/s")
    out.append(SentenceTransformer(d + "/s", device="cpu").encode(S, convert_to_tensor=True))
    return out


def torchvision() -> list:
    """Image classifiers and transforms."""
    import torchvision
    from torchvision import models as M, transforms as T
    from torchvision.transforms import v2

    out = []
    for n in ("resnet18", "mobilenet_v2", "vgg11", "densenet121", "squeezenet1_0", "shufflenet_v2_x0_5"):
        torch.manual_seed(0)
        m = getattr(M, n)(num_classes=3).train()
        x = torch.randn(2, 3, 64, 64)
        out += train(m, lambda: F.cross_entropy(m(x), torch.tensor([0, 2])), 1)
    x = torch.rand(3, 16, 16)
    out += [
        T.Normalize([0.5] * 3, [0.5] * 3)(x),
        T.Resize(8)(x),
        T.CenterCrop(8)(x),
        T.Grayscale()(x),
        v2.functional.horizontal_flip(x),
        T.functional.rotate(x, 30.0),
        T.functional.adjust_hue(x, 0.1),
        T.functional.gaussian_blur(x, 3),
        torchvision.utils.make_grid(x[None].repeat(4, 1, 1, 1)),
    ]
    return out


def lpips() -> list:
    """A perceptual distance."""
    import lpips

    torch.manual_seed(0)
    m = lpips.LPIPS(pretrained=False, pnet_rand=True, net="squeeze", verbose=False)
    a = torch.rand(1, 3, 64, 64, requires_grad=True)
    y = m(a, torch.rand(1, 3, 64, 64))
    y.sum().backward()
    return [y, a.grad]


def transformers() -> list:
    """Causal and sequence-to-sequence models: trained, saved, generating; a Trainer over a plain module."""
    import transformers as t

    out = []
    ids = torch.randint(3, 60, (2, 8))
    for C, M in (
        (t.LlamaConfig, t.LlamaForCausalLM),
        (t.GPT2Config, t.GPT2LMHeadModel),
        (t.T5Config, t.T5ForConditionalGeneration),
        (t.MixtralConfig, t.MixtralForCausalLM),
    ):
        torch.manual_seed(0)
        kw = (
            dict(vocab_size=64, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
            if C is not t.GPT2Config and C is not t.T5Config
            else dict(vocab_size=64, n_embd=16, n_layer=2, n_head=2)
            if C is t.GPT2Config
            else dict(vocab_size=64, d_model=16, d_ff=32, num_layers=2, num_heads=2, d_kv=8, decoder_start_token_id=0)
        )
        if C is t.MixtralConfig:
            kw.update(num_key_value_heads=2, num_local_experts=2)
        m = M(C(**kw)).eval()
        out += train(m, lambda: m(input_ids=ids, labels=ids).loss)
        d = tempfile.mkdtemp()
        m.save_pretrained(d)
        m = M.from_pretrained(d)
        out.append(m.generate(ids[:, :4], max_new_tokens=4, do_sample=False, pad_token_id=0).float())
    from transformers import Trainer, TrainingArguments

    class N(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 2)

        def forward(self, x, labels=None):
            o = self.l(x)
            return {"loss": F.cross_entropy(o, labels), "logits": o}

    torch.manual_seed(0)
    data = [{"x": torch.randn(4), "labels": torch.tensor(i % 2)} for i in range(16)]
    tr = Trainer(
        N(),
        TrainingArguments(
            tempfile.mkdtemp(),
            num_train_epochs=1,
            per_device_train_batch_size=4,
            report_to=[],
            save_strategy="epoch",
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=data,
    )
    out.append(torch.tensor(tr.train().training_loss))
    return out


PROGRAMS = {
    "timm": timm,
    "peft": peft,
    "diffusers": diffusers,
    "x_transformers": x_transformers,
    "vector_quantize_pytorch": vector_quantize_pytorch,
    "monai": monai,
    "segmentation_models_pytorch": segmentation_models_pytorch,
    "open_clip": open_clip,
    "sentence_transformers": sentence_transformers,
    "torchvision": torchvision,
    "lpips": lpips,
    "transformers": transformers,
}
"""The programs by the package that each is about."""
