"""Let a CUDA build of torchvision load beside a CPU build of torch.

dro imports torchvision for image networks that this bench never builds; torchvision's compiled part does not
load without CUDA, and its Python part then fails on two operators that are declared nowhere.
"""

import torch

SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
for operator in ("nms", "qnms"):
    torch.library.define(f"torchvision::{operator}", SCHEMA)
