# ruff: noqa: B023 (a loss is computed within its round of the loop)
"""Further uses of the libraries, each through many of its parts: a name is the package's, and what of it."""

from __future__ import annotations

import inspect
import tempfile

import torch
from steps import train

nn, F = torch.nn, torch.nn.functional


def augmentations() -> list:
    """Random changes of images, and the matrices that they say they made."""
    import kornia.augmentation as K

    out = []
    for change in (
        K.RandomAffine((-15.0, 20.0), translate=(0.1, 0.1), scale=(0.8, 1.2), shear=(-5.0, 5.0), p=1.0),
        K.RandomPerspective(0.5, p=1.0),
        K.RandomResizedCrop((12, 12)),
        K.ColorJitter(0.1, 0.2, 0.3, 0.1, p=1.0),
        K.RandomErasing(p=1.0),
        K.RandomMotionBlur(3, 35.0, 0.5, p=1.0),
        K.RandomElasticTransform(p=1.0),
        K.RandomThinPlateSpline(p=1.0),
        K.RandomEqualize(p=1.0),
        K.RandomClahe(grid_size=(2, 2), p=1.0),
        K.RandomJPEG(p=1.0),
        K.RandomPlasmaShadow(p=1.0),
    ):
        torch.manual_seed(1)
        out.append(change(torch.rand(2, 3, 16, 16)))
        if getattr(change, "transform_matrix", None) is not None:
            out.append(change.transform_matrix)
    return out


def schedulers() -> list:
    """Samplers of diffusion with options, each from noise to an image."""
    import diffusers as D

    out = []
    for kind, options in (
        (
            D.DDIMScheduler,
            {"prediction_type": "v_prediction", "rescale_betas_zero_snr": True, "timestep_spacing": "trailing"},
        ),
        (
            D.DPMSolverMultistepScheduler,
            {"algorithm_type": "sde-dpmsolver++", "use_karras_sigmas": True, "solver_order": 3},
        ),
        (D.EulerDiscreteScheduler, {"use_beta_sigmas": True}),
        (D.UniPCMultistepScheduler, {"solver_order": 3, "use_karras_sigmas": True}),
        (D.HeunDiscreteScheduler, {"use_exponential_sigmas": True}),
        (D.KDPM2AncestralDiscreteScheduler, {}),
        (D.LMSDiscreteScheduler, {"use_karras_sigmas": True}),
        (D.DEISMultistepScheduler, {"solver_order": 3}),
        (D.PNDMScheduler, {}),
        (D.LCMScheduler, {}),
        (D.FlowMatchEulerDiscreteScheduler, {"shift": 3.0}),
    ):
        torch.manual_seed(0)
        generator = torch.Generator().manual_seed(0)
        scheduler = kind(**options)
        scheduler.set_timesteps(6)
        x = torch.randn(2, 3, 4, 4) * getattr(scheduler, "init_noise_sigma", 1.0)
        takes = "generator" in inspect.signature(scheduler.step).parameters
        for t in scheduler.timesteps:
            scaled = scheduler.scale_model_input(x, t) if hasattr(scheduler, "scale_model_input") else x
            x = scheduler.step(torch.sin(scaled), t, x, **({"generator": generator} if takes else {})).prev_sample
        out.append(x)
    return out


def generation() -> list:
    """A tiny Llama: tokens and scores of every way to generate."""
    import transformers

    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48, pad_token_id=0,
            eos_token_id=63,
        )
    ).eval()  # fmt: skip
    ids = torch.randint(1, 60, (2, 5))
    out = []
    for options in (
        {"num_beams": 4, "num_return_sequences": 2, "length_penalty": 0.5, "no_repeat_ngram_size": 2},
        {"do_sample": True, "num_beams": 2, "top_p": 0.8},
        {"do_sample": True, "min_p": 0.1, "repetition_penalty": 1.3},
        {"do_sample": True, "typical_p": 0.5, "temperature": 0.7, "top_k": 10},
        {"suppress_tokens": [1, 2, 3], "min_new_tokens": 4, "exponential_decay_length_penalty": (3, 1.2)},
        {"cache_implementation": "static"},
        {"sequence_bias": {(5,): 2.0, (6, 7): -3.0}, "renormalize_logits": True},
    ):
        torch.manual_seed(1)
        made = model.generate(
            ids, max_new_tokens=6, attention_mask=torch.ones_like(ids), return_dict_in_generate=True, output_scores=True, **options
        )  # fmt: skip
        out += [made.sequences, torch.stack(made.scores).clamp(-1e4, 1e4)]
    return out


def adapters() -> list:
    """Adapters of a Llama: trained, saved, loaded, merged."""
    import peft
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48, pad_token_id=0
    )  # fmt: skip
    ids = torch.randint(1, 60, (2, 7))
    common = {"task_type": "CAUSAL_LM", "target_modules": ["q_proj", "v_proj"]}
    out = []
    for adapter in (
        peft.LoraConfig(r=4, use_rslora=True, bias="lora_only", **common),
        peft.LoraConfig(r=4, init_lora_weights="pissa", **common),
        peft.LoKrConfig(r=2, **common),
        peft.FourierFTConfig(n_frequency=20, **common),
        peft.HRAConfig(r=4, **common),
        peft.VBLoRAConfig(r=2, num_vectors=8, vector_length=16, topk=2, **common),
        peft.C3AConfig(block_size=8, task_type="CAUSAL_LM", target_modules=["q_proj"]),
    ):
        torch.manual_seed(0)
        model = peft.get_peft_model(transformers.LlamaForCausalLM(config), adapter)
        out += train(
            model,
            lambda: model(input_ids=ids, labels=ids).loss,
            2,
            params=[p for p in model.parameters() if p.requires_grad],
        )
        folder = tempfile.mkdtemp()
        model.save_pretrained(folder)
        torch.manual_seed(0)
        loaded = peft.PeftModel.from_pretrained(transformers.LlamaForCausalLM(config), folder).eval()
        out += [loaded(input_ids=ids).logits, loaded.merge_and_unload()(input_ids=ids).logits]
    return out


def images_of_bytes() -> list:
    """Transforms of bytes and of boxes, and a detector, whose equal scores have an order."""
    import torchvision
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    image = (torch.rand(3, 24, 32) * 255).to(torch.uint8)
    boxes = tv_tensors.BoundingBoxes([[2, 3, 12, 14], [5, 5, 20, 20]], format="XYXY", canvas_size=(24, 32))
    out = []
    for change in (
        v2.Resize((10, 14)),
        v2.Resize(10, interpolation=v2.InterpolationMode.BICUBIC),
        v2.RandomResizedCrop(16, antialias=False),
        v2.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 10),
        v2.RandomPerspective(p=1.0),
        v2.RandomRotation(30, expand=True),
        v2.RandomPhotometricDistort(p=1.0),
    ):
        torch.manual_seed(1)
        out += [t.as_subclass(torch.Tensor) for t in change(tv_tensors.Image(image), boxes)]
    torch.manual_seed(0)
    model = torchvision.models.detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=4
    )
    model.double().eval()
    with torch.no_grad():
        found = model([torch.rand(3, 64, 64, dtype=torch.float64)])[0]
    return [*out, found["scores"], found["labels"], found["boxes"]]


def transforms() -> list:
    """Random transforms of medical images."""
    import monai.transforms as T

    x = torch.rand(1, 20, 24)
    out = []
    for change in (
        T.RandAffine(1.0, (0.2,), (0.1,), (2,), (0.1,), padding_mode="border"),
        T.Rand2DElastic((5, 5), (1, 2), prob=1.0),
        T.RandBiasField(prob=1.0),
        T.RandGibbsNoise(1.0),
        T.RandHistogramShift(prob=1.0),
        T.RandGridDistortion(prob=1.0),
        T.Spacing((1.5, 1.2)),
        T.Resize((10, 12), anti_aliasing=True),
        T.SavitzkyGolaySmooth(3, 1),
    ):
        if hasattr(change, "set_random_state"):
            change.set_random_state(3)
        out.append(torch.as_tensor(change(x.clone())))
    return out


def mapped() -> list:
    """Dicts of tensors of several dtypes in files and in one piece."""
    from tensordict import MemoryMappedTensor, TensorDict

    td = TensorDict({"a": torch.randn(3, 4), "b": {"c": torch.randn(3, 2).half(), "d": torch.arange(3)}}, [3])
    folder = tempfile.mkdtemp()
    td.memmap(folder)
    torch.save(td, folder + "/all.pt")
    out = [MemoryMappedTensor.from_tensor(torch.arange(4)) + 1]
    for again in (TensorDict.load_memmap(folder), torch.load(folder + "/all.pt", weights_only=False), td.consolidate()):
        out += [again["a"], again["b", "c"], again["b", "d"]]
    return [t.as_subclass(torch.Tensor) for t in out]


def quantizers() -> list:
    """Quantizers by cosines, by rotation, by chance, of images and of levels."""
    import vector_quantize_pytorch as V

    out = []
    for quantizer, shape in (
        (V.VectorQuantize(dim=8, codebook_size=16, use_cosine_sim=True, rotation_trick=True), (2, 12, 8)),
        (V.VectorQuantize(dim=8, codebook_size=16, kmeans_init=True, kmeans_iters=3), (2, 12, 8)),
        (V.VectorQuantize(dim=8, codebook_size=16, stochastic_sample_codes=True, sample_codebook_temp=0.5), (2, 12, 8)),
        (V.GroupedResidualVQ(dim=8, num_quantizers=2, groups=2, codebook_size=16), (2, 12, 8)),
        (V.ResidualFSQ(dim=8, levels=[8, 5, 5], num_quantizers=2), (2, 12, 8)),
        (V.LatentQuantize(levels=[5, 5, 4], dim=8), (2, 8, 4, 4)),
        (V.SimVQ(dim=8, codebook_size=16), (2, 12, 8)),
    ):
        x = torch.randn(shape, requires_grad=True)
        made = quantizer(x)
        made[0].square().mean().backward()
        out += [t for t in made if torch.is_tensor(t)] + [x.grad]
    return out


def curves() -> list:
    """Metrics of scores with ties, of rankings and of groups."""
    import torchmetrics.functional as M
    from torchmetrics.functional.classification import multilabel_ranking_loss
    from torchmetrics.functional.clustering import adjusted_mutual_info_score
    from torchmetrics.functional.nominal import cramers_v

    scores, classes = (torch.rand(30, 4).softmax(1) * 8).round() / 8, torch.randint(0, 4, (30,))
    hits = torch.randint(0, 2, (30,))
    groups = torch.randint(0, 3, (30,))
    return [
        M.auroc(scores, classes, "multiclass", num_classes=4, average="weighted"),
        M.average_precision(scores, classes, "multiclass", num_classes=4, average=None),
        *M.roc(scores[:, 0], hits, "binary"),
        M.calibration_error(scores, classes, "multiclass", num_classes=4, norm="l2"),
        M.spearman_corrcoef(scores[:, 0], scores[:, 1]),
        M.kendall_rank_corrcoef(scores[:, 0], scores[:, 1]),
        M.retrieval_normalized_dcg(scores[:, 0], hits, top_k=7),
        M.retrieval_precision(scores[:, 0], hits, top_k=7),
        cramers_v(groups, classes),
        adjusted_mutual_info_score(groups, classes),
        multilabel_ranking_loss(torch.rand(6, 4), torch.randint(0, 2, (6, 4)), num_labels=4),
    ]


PROGRAMS = {
    "diffusers.schedulers": schedulers,
    "kornia.augmentation": augmentations,
    "monai.transforms": transforms,
    "peft.adapters": adapters,
    "tensordict.mapped": mapped,
    "torchmetrics.curves": curves,
    "torchvision.bytes": images_of_bytes,
    "transformers.generation": generation,
    "vector_quantize_pytorch.kinds": quantizers,
}
"""The programs by the package that each is about, and what of it."""
