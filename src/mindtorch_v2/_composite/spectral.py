"""Short-time Fourier transforms."""

from __future__ import annotations

from typing import Any

from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor
from mindtorch_v2._warnings import warn_once


def _shown(x: Tensor) -> str:
    return f"torch.{x.dtype.cpp}Tensor[{', '.join(map(str, x.shape))}]"


def _flag(value: Any) -> str:
    return "None" if value is None else str(int(value))


def _window_shown(window: Tensor | None) -> str:
    return "None" if window is None else f"torch.{window.dtype.cpp}Tensor{{[{', '.join(map(str, window.shape))}]}}"


def _centred(window: Tensor | None, n_fft: int, win_length: int, like: Tensor) -> Tensor | None:
    """The window filled up to n_fft points on both sides; ones where none is given but needed."""
    if win_length == n_fft:
        return window
    if window is None:
        window = F.ones([win_length], dtype=like.dtype, device=like.device)
    left = (n_fft - win_length) // 2
    return F.constant_pad_nd(window, [left, n_fft - win_length - left], 0)


_NO_WINDOW = "A window was not provided. A rectangular window will be applied"
_OWN_WINDOW = (
    "To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
)


def stft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The transforms of overlapping frames: (batch, frequencies, frames), complex, or with parts in a last dimension.

    RuntimeError for what does not fit: a signal of more than two dimensions, a window of another length, a step that is not positive.
    """
    return stft_center(
        self,
        n_fft,
        hop_length,
        win_length,
        window,
        False,
        "constant",
        normalized,
        onesided,
        return_complex,
        align_to_window,
    )


def stft_center(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """`stft` of a signal that is first extended, so that frames stand around their points."""
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    real = not self.dtype.is_complex and (window is None or not window.dtype.is_complex)
    if return_complex is None:
        if not real:
            return_complex = True
        else:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
    x = self
    if center:
        lead = [1] * (3 - x.dim())
        extended = F.pad(F.view(x, [*lead, *x.shape]), [n_fft // 2, n_fft // 2], pad_mode)
        x = F.view(extended, list(extended.shape[len(lead) :]))
    text = (
        f"stft({_shown(x)}, n_fft={n_fft}, hop_length={hop}, win_length={length}, window={_window_shown(window)}, "
        f"normalized={int(normalized)}, onesided={_flag(onesided)}, return_complex={_flag(return_complex)}, "
        f"align_to_window={_flag(align_to_window)}) : "
    )
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError(f"{text}expected a tensor of floating point or complex values")
    if x.dim() not in (1, 2):
        raise RuntimeError(f"{text}expected a 1D or 2D tensor")
    if not 0 < n_fft <= x.shape[-1]:
        raise RuntimeError(f"{text}expected 0 < n_fft < {x.shape[-1]}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{text}expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(f"{text}expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and (window.dim() != 1 or window.shape[0] != length):
        raise RuntimeError(
            f"{text}expected a 1D window tensor of size equal to win_length={length}, but got window with size {list(window.shape)}"
        )
    if window is None:
        warn_once(
            _NO_WINDOW
            + ",which is known to cause spectral leakage. Other windows such as torch.hann_window or torch.hamming_window are "
            "recommended to reduce spectral leakage." + _OWN_WINDOW
        )
    if onesided is None:
        onesided = real
    elif onesided and not real:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    size = n_fft
    if align_to_window:
        size = length
        filled = window
    else:
        filled = _centred(window, n_fft, length, x)
    frames = F.unfold(x if x.dim() == 2 else F.unsqueeze(x, 0), -1, size, hop)
    if filled is not None:
        frames = F.mul(frames, filled)
    if size < n_fft:
        frames = F.constant_pad_nd(frames, [(n_fft - size) // 2, n_fft - size - (n_fft - size) // 2], 0)
    mode = 1 if normalized else 0
    if frames.dtype.is_complex:
        found = F._fft_c2c(frames, [2], mode, True)
    else:
        found = F._fft_r2c(frames, [2], mode, onesided)
    found = F.transpose(found, 1, 2)
    if x.dim() == 1:
        found = F.squeeze(found, 0)
    return found if return_complex else F.view_as_real(found)


def istft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose `stft` self is, by the weighted sum of the frames' inverse transforms. RuntimeError where the windows leave gaps."""
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    if not self.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    text = (
        f"istft(CPU{self.dtype.cpp}Type[{', '.join(map(str, self.shape))}], n_fft={n_fft}, hop_length={hop}, win_length={size}, "
        f"window={_window_shown(window)}, center={int(center)}, normalized={int(normalized)}, onesided={_flag(onesided)}, "
        f"length={'None' if length is None else length}, return_complex={int(return_complex)})"
    )
    if self.dim() < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-{self.dim() + 1}, {self.dim()}], but got -3)"
        )
    frequencies, frames = self.shape[-2:]
    if not self.numel():
        raise RuntimeError(f"{text} : input tensor cannot be empty.")
    if self.dim() > 3:
        raise RuntimeError(f"{text} : expected a tensor with 3 or 4 dimensions, but got {self.dim() + 1}")
    whole = return_complex or (window is not None and window.dtype.is_complex)
    if onesided is None:
        onesided = frequencies != n_fft
    if onesided and frequencies != n_fft // 2 + 1:
        raise RuntimeError(
            f"{text} : expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when onesided=True, "
            f"but got {frequencies}"
        )
    if not onesided and frequencies != n_fft:
        raise RuntimeError(
            f"{text} : expected the frequency dimension (3rd to the last) of the input tensor to match n_fft when onesided=False, but got "
            f"{frequencies}"
        )
    if not 0 < hop <= size:
        raise RuntimeError(f"{text} : expected 0 < hop_length <= win_length")
    if not 0 < size <= n_fft:
        raise RuntimeError(f"{text} : expected 0 < win_length <= n_fft")
    if window is not None and (window.dim() != 1 or window.shape[0] != size):
        raise RuntimeError(f"{text} : Invalid window shape. window has to be 1D and length of `win_length`")
    if whole and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if window is None:
        warn_once(
            f"{_NO_WINDOW}.Please provide the same window used by stft to make the inversion lossless.{_OWN_WINDOW}"
        )
        window = F.ones([size], dtype=self.dtype if whole else self.dtype.to_real(), device=self.device)
    filled = _centred(window, n_fft, size, window)
    x = F.transpose(self if self.dim() == 3 else F.unsqueeze(self, 0), 1, 2)
    mode = 1 if normalized else 2
    if whole:
        pieces = F._fft_c2c(x, [2], mode, False)
    else:
        pieces = F._fft_c2r(x if onesided else F.slice(x, -1, 0, n_fft // 2 + 1), [2], mode, n_fft)
    total = n_fft + hop * (frames - 1)
    weights = F.expand(F.view(F.mul(filled, filled), [1, 1, n_fft]), [1, frames, n_fft])
    signal = _overlapped(F.mul(pieces, F.view(filled, [1, 1, n_fft])), total, n_fft, hop)
    envelope = _overlapped(weights, total, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - n_fft // 2 if center else total
    signal = F.slice(signal, -1, start, min(end, total))
    envelope = F.slice(envelope, -1, start, min(end, total))
    if envelope.device.type != "meta" and not bool(F.gt(F.amin(F.abs(envelope)), 1e-11)):
        raise RuntimeError(f"{text} window overlap add min: 1\n[ CPUBoolType{{}} ]")
    signal = F.div(signal, envelope)
    if length is not None and signal.shape[-1] < length:
        warn_once(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please check your "
            "center and hop_length settings."
        )
        signal = F.constant_pad_nd(signal, [0, length - signal.shape[-1]], 0)
    return signal if self.dim() == 3 else F.squeeze(signal, 0)


def _overlapped(frames: Tensor, total: int, size: int, hop: int) -> Tensor:
    """The sum of frames (batch, frame, point) at their places in a signal."""
    if frames.dtype.is_complex:
        parts = [_overlapped(part, total, size, hop) for part in (F.real(frames), F.imag(frames))]
        return F.complex(parts[0], parts[1])
    columns = F.transpose(frames, 1, 2)
    folded = F.col2im(columns, [1, total], [1, size], [1, 1], [0, 0], [1, hop])
    return F.reshape(folded, [frames.shape[0], total])
