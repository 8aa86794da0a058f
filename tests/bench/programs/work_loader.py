"""A PyTorch DataLoader whose 4 workers are forked anew each epoch.   work_loader.py EPOCHS"""
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

import steady

torch.set_num_threads(1)
torch.manual_seed(1)
loader = DataLoader(TensorDataset(torch.randn(640, 20), torch.randint(0, 2, (640,))), batch_size=32, num_workers=4,
                    multiprocessing_context="fork")


def epoch():
    for inputs, targets in loader:
        pass


steady.measure(epoch, int(sys.argv[1]), warm_up=1)
