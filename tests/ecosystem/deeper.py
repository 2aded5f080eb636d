"""Uses of the libraries that reach deeper into torch: dicts of tensors under vmap, attributions by layers, adapters of a denoiser, noise by a tree of seeds."""

from __future__ import annotations

import tempfile

import torch
from steps import train

nn, F = torch.nn, torch.nn.functional


def vmapped() -> list:
    """An ensemble of modules, and functions of dicts over a batch of them."""
    from tensordict import TensorDict
    from tensordict.nn import EnsembleModule, TensorDictModule

    td = TensorDict({"a": torch.randn(4, 3), "b": {"c": torch.randn(4)}}, [4])
    ensemble = EnsembleModule(TensorDictModule(nn.Linear(3, 2), ["a"], ["o"]), 3)
    out = [ensemble(td.clone())["o"], *train(ensemble, lambda: ensemble(td.clone())["o"].square().mean())]
    parameters = TensorDict.from_modules(*[nn.Linear(3, 2) for _ in range(4)], as_module=False)
    bare = nn.Linear(3, 2, device="meta")

    def called(x, values):
        with values.to_module(bare):
            return bare(x)

    return [
        *out,
        torch.vmap(called, (None, 0))(torch.randn(5, 3), parameters),
        torch.vmap(called, (0, 0))(torch.randn(4, 5, 3), parameters),
        torch.vmap(lambda t: TensorDict({"k": t["a"] * t["b", "c"]}, []), chunk_size=3)(td)["k"],
        torch.vmap(torch.func.grad(lambda t: t["a"].sin().sum()))(td)["a"],
        torch.vmap(lambda x: torch.vmap(lambda t: t["a"].sum() * x)(td))(torch.arange(3.0)),
        torch.vmap(lambda t: t["a"] + torch.randn(3), randomness="different")(td),
    ]


def by_layers() -> list:
    """Attributions to images and to layers, by rules, by gradients and by leaving parts out."""
    import captum.attr as A
    from captum.attr._utils.lrp_rules import Alpha1_Beta0_Rule, GammaRule

    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 3)
    ).eval()  # fmt: skip
    x, base = torch.randn(2, 1, 14, 14), torch.randn(4, 1, 14, 14)
    zones = (torch.arange(196) // 49).reshape(1, 1, 14, 14)
    out = [
        A.GuidedGradCam(model, model[3]).attribute(x, target=1),
        A.LayerAttribution.interpolate(A.LayerGradCam(model, model[3]).attribute(x, target=1), (14, 14)),
        A.Occlusion(model).attribute(x, sliding_window_shapes=(1, 4, 4), strides=(1, 3, 3), target=1),
        A.DeepLiftShap(model).attribute(x, base, target=1),
        A.GradientShap(model).attribute(x, base, n_samples=3, stdevs=0.1, target=1),
        A.KernelShap(model).attribute(x[:1], target=0, feature_mask=zones, n_samples=20),
        A.NoiseTunnel(A.IntegratedGradients(model)).attribute(x, nt_samples=3, nt_type="vargrad", target=1, n_steps=4),
        A.LayerConductance(model, model[3]).attribute(x, target=1, n_steps=5),
        A.InternalInfluence(model, model[3]).attribute(x, target=1, n_steps=5),
        A.NeuronDeepLift(model, model[7]).attribute(x, 1),
    ]
    lower = model[:6]
    lower[0].rule, lower[3].rule = GammaRule(), Alpha1_Beta0_Rule()
    return [*out, A.LRP(lower).attribute(x.abs(), target=(1, 0, 0))]


def adapted() -> list:
    """A denoiser with an adapter: trained, saved, loaded, fused; and a sampler whose noise comes from a tree of seeds."""
    from diffusers import CosineDPMSolverMultistepScheduler, UNet2DConditionModel
    from peft import LoraConfig

    def denoiser():
        torch.manual_seed(0)
        return UNet2DConditionModel(
            sample_size=8, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4, cross_attention_dim=8,
            attention_head_dim=4, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        ).requires_grad_(False)  # fmt: skip

    model, x, hidden, times = denoiser(), torch.randn(2, 4, 8, 8), torch.randn(2, 5, 8), torch.tensor([10, 900])
    model.add_adapter(
        LoraConfig(r=4, init_lora_weights="gaussian", target_modules=["to_k", "to_q", "to_v", "to_out.0"])
    )
    own = [p for p in model.parameters() if p.requires_grad]
    out = train(
        model, lambda: model(x, times, hidden).sample.square().mean(), 4, lambda ps: torch.optim.SGD(ps, 0.1), own
    )
    folder = tempfile.mkdtemp()
    model.save_lora_adapter(folder)
    again = denoiser()
    again.load_lora_adapter(folder, prefix=None, weight_name="pytorch_lora_weights.safetensors")
    out.append(again(x, times, hidden).sample)
    model.set_adapters(["default"], weights=[0.5])
    model.fuse_lora()
    out.append(model(x, times, hidden).sample)
    scheduler = CosineDPMSolverMultistepScheduler()
    scheduler.set_timesteps(5)
    image, generator = torch.randn(1, 3, 4, 4) * scheduler.init_noise_sigma, torch.Generator().manual_seed(0)
    for time in scheduler.timesteps:
        guess = torch.tanh(scheduler.scale_model_input(image, time)) / 2
        image = scheduler.step(guess, time, image, generator=generator).prev_sample
    return [*out, image]


PROGRAMS = {"captum.layers": by_layers, "diffusers.adapted": adapted, "tensordict.vmapped": vmapped}
"""The programs by the package that each is about, and what of it."""
