"""Writers of event files."""

# pyright: reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

import os
import socket
import time
from datetime import datetime
from typing import Any

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from . import summary
from ._convert_np import make_np

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Writes events to a file of a folder, which it makes."""

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Write an event of a step, with the time of day."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a summary of a step."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Write a graph."""
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Let the file have what was written."""
        self.event_writer.flush()

    def close(self) -> None:
        """End."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Go on after `close`."""
        self.event_writer.reopen()


class SummaryWriter:
    """Writes numbers, histograms, images, texts, graphs and the like for TensorBoard, a file for each writer.

    log_dir: the folder; without it one below `runs/` with the time, the machine's name and `comment` in its name. purge_step: what an earlier run wrote of this step and of
    later ones is to be hidden. max_queue, flush_secs: when what is written reaches the file.
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step, self.max_queue, self.flush_secs, self.filename_suffix = (
            purge_step,
            max_queue,
            flush_secs,
            filename_suffix,
        )
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()
        ends = [1e-12]
        while ends[-1] * 1.1 < 1e20:
            ends.append(ends[-1] * 1.1)
        self.default_bins = [-end for end in reversed(ends)] + [0] + ends

    def _get_file_writer(self) -> FileWriter:
        """The writer, opened again after `close`."""
        if self.file_writer is None or self.all_writers is None:
            self.file_writer = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers = {self.log_dir: self.file_writer}
            if self.purge_step is not None:
                self.file_writer.add_event(Event(step=self.purge_step, file_version="brain.Event:2"))
                self.file_writer.add_event(Event(step=self.purge_step, session_log=SessionLog(status=SessionLog.START)))
                self.purge_step = None
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def add_hparams(
        self,
        hparam_dict: dict,
        metric_dict: dict,
        hparam_domain_discrete: dict | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Write hyperparameters, and what came of them, as a run of its own. TypeError for what are no dicts."""
        made = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        with SummaryWriter(log_dir=os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            for one in made:
                writer._get_file_writer().add_summary(one, global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Write a number. AssertionError for several."""
        made = summary.scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write numbers that one drawing shows, each as a run of its own."""
        self._get_file_writer()
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers[folder].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Write all elements of a tensor."""
        self._get_file_writer().add_summary(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Write the histogram of values. bins: "tensorflow" (finer near 0), or as numpy has them. ValueError without values."""
        edges = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        made = summary.histogram(tag, values, edges, max_bins)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write a histogram of which the buckets are known. ValueError where there are not as many limits as counts."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        made = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Write an image: of uint8 from 0 to 255, of floats from 0 to 1. dataformats: what its dimensions are."""
        self._get_file_writer().add_summary(
            summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime
        )

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Write several images in a grid."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Write a figure of matplotlib's, or a list of them."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        images = []
        for one in figure if isinstance(figure, list) else [figure]:
            canvas: Any = FigureCanvasAgg(one)
            canvas.draw()
            images.append(np.asarray(canvas.buffer_rgba())[:, :, :3])
            if close:
                pyplot.close(one)
        self.add_image(tag, np.stack(images), global_step, walltime, "NHWC")

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Write sound of one channel, values from -1 to 1."""
        self._get_file_writer().add_summary(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a text, in Markdown."""
        self._get_file_writer().add_summary(summary.text(tag, text_string), global_step, walltime)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Write the operators of `model(*input_to_model)`, which runs, in the scopes of its modules."""
        from ._pytorch_graph import graph

        given = () if input_to_model is None else input_to_model
        self._get_file_writer().add_graph(graph(model, given, verbose, use_strict_trace))

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Write the rows of a matrix as points for the projector, with labels (`metadata`). ValueError where there are not as many labels as rows.

        Raises NotImplementedError for images as labels.
        """
        if label_img is not None:
            raise NotImplementedError("SummaryWriter.add_embedding: images as labels are not implemented")
        rows = make_np(mat)
        if rows.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        if metadata is not None and len(metadata) != len(rows):
            raise ValueError("#labels should equal with #data points")
        place = f"{str(0 if global_step is None else global_step).zfill(5)}/{tag}"
        folder = os.path.join(self.log_dir, *place.split("/"))
        os.makedirs(folder, exist_ok=True)
        config = [f'embeddings {{\ntensor_name: "{tag}:{place[:5]}"\ntensor_path: "{place}/tensors.tsv"']
        np.savetxt(os.path.join(folder, "tensors.tsv"), rows, delimiter="\t")
        if metadata is not None:
            lines = ["\t".join(map(str, one)) if metadata_header else str(one) for one in metadata]
            if metadata_header:
                lines.insert(0, "\t".join(metadata_header))
            with open(os.path.join(folder, "metadata.tsv"), "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
            config.append(f'metadata_path: "{place}/metadata.tsv"')
        with open(os.path.join(self.log_dir, "projector_config.pbtxt"), "a", encoding="utf-8") as f:
            f.write("\n".join([*config, "}"]) + "\n")

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Write precision and recall by threshold."""
        made = summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def flush(self) -> None:
        """Let the files have what was written."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """End; another call opens a new file."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
