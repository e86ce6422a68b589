"""Names torchvision's operators before its first import, so that its CUDA wheel is usable beside a CPU build of torch.

For the environment of `make engines` only (it stands on PYTHONPATH of those processes): the wheel's compiled operators
cannot be loaded there, its picture transforms are plain torch and need no more than that the names exist.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.abc import MetaPathFinder

BOXES = "Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width"
GRADIENT = "Tensor grad, Tensor rois, {more}float spatial_scale, int pooled_height, int pooled_width, {tail}"
SIZES = "int batch_size, int channels, int height, int width"
CONVOLUTION = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int stride_h, int stride_w, int pad_h, int pad_w, "
    "int dilation_h, int dilation_w, int groups, int offset_groups, bool use_mask"
)
SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align({BOXES}, int sampling_ratio, bool aligned) -> Tensor",
    f"qroi_align({BOXES}, int sampling_ratio, bool aligned) -> Tensor",
    f"ps_roi_align({BOXES}, int sampling_ratio) -> (Tensor, Tensor)",
    f"roi_pool({BOXES}) -> (Tensor, Tensor)",
    f"ps_roi_pool({BOXES}) -> (Tensor, Tensor)",
    f"_roi_align_backward({GRADIENT.format(more='', tail=SIZES)}, int sampling_ratio, bool aligned) -> Tensor",
    f"_ps_roi_align_backward({GRADIENT.format(more='Tensor mapping, ', tail='int sampling_ratio, ' + SIZES)}) -> Tensor",
    f"_roi_pool_backward({GRADIENT.format(more='Tensor argmax, ', tail=SIZES)}) -> Tensor",
    f"_ps_roi_pool_backward({GRADIENT.format(more='Tensor mapping, ', tail=SIZES)}) -> Tensor",
    f"deform_conv2d({CONVOLUTION}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, {CONVOLUTION}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)


class Namer(MetaPathFinder):
    """Defines the operators when torchvision is first looked for, and finds nothing itself."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname == "torchvision":
            sys.meta_path.remove(self)
            import torch

            library = torch.library.Library("torchvision", "DEF")
            for schema in SCHEMAS:
                library.define(schema)
            torch.torchvision_names = library  # an operator lives as long as its library


HIDES = "SNELLEN_SHIM_HIDES_TORCHVISION"
"""Set it for a program that reads picture files by torchvision's compiled half, and by Pillow where it is not installed."""

if os.environ.get(HIDES):
    sys.modules["torchvision"] = None
elif importlib.util.find_spec("torch") is not None:
    sys.meta_path.insert(0, Namer())
