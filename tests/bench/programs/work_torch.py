"""PyTorch on the CPU, one thread, training steps after a warm-up.   work_torch.py mlp|cnn|transformer STEPS

mlp          20-64-2, batch 32, Adam: a third of a millisecond, nearly all of it bookkeeping of small tensors
cnn          two convolutions over 32 images of 28 x 28
transformer  two encoder layers, width 64, 32 sequences of 24
"""
import sys

import torch
from torch import nn

import steady

torch.set_num_threads(1)
torch.set_num_interop_threads(1)
torch.manual_seed(1)


def mlp():
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))
    return model, torch.randn(32, 20), torch.randint(0, 2, (32,))


def cnn():
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Flatten(), nn.Linear(32 * 7 * 7, 10))
    return model, torch.randn(32, 1, 28, 28), torch.randint(0, 10, (32,))


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(64, 10)

    def forward(self, words):
        return self.out(self.encoder(self.embed(words)).mean(dim=1))


def transformer():
    return Sequence(), torch.randint(0, 100, (32, 24)), torch.randint(0, 10, (32,))


model, inputs, targets = {"mlp": mlp, "cnn": cnn, "transformer": transformer}[sys.argv[1]]()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_of = nn.CrossEntropyLoss()


def step():
    optimizer.zero_grad()
    loss = loss_of(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.item()


steady.measure(step, int(sys.argv[2]))
