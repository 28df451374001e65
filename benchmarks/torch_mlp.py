"""The MLP step in PyTorch eager, as one writes it from the paper; run by mlp_step in its own environment.

python torch_mlp.py STEPS -> prints microseconds per step
"""

import sys
import time

import torch

S, HIDDEN, K, RATE, BACKORDER, HOLDING, RADIUS = 100, 64, 10, 1e-3, 1.0, 0.2, 0.1


def main(steps):
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    policy = torch.nn.Sequential(
        torch.nn.Linear(S, HIDDEN), torch.nn.ELU(), torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.ELU(),
        torch.nn.Linear(HIDDEN, 1),
    )  # fmt: skip
    log_gamma = torch.zeros(())
    optimizer = torch.optim.SGD(policy.parameters(), lr=RATE)
    X = torch.randn(steps, S)
    Y = X[:, 0].abs() + 0.3 * torch.randn(steps)

    def cost(x, y):
        r = policy(x)[0] - y
        return torch.maximum(HOLDING * r, -BACKORDER * r)

    began = time.perf_counter()
    for x, y in zip(X, Y, strict=True):
        gamma = log_gamma.exp()
        step = 1.0 / (2.0 * gamma)
        moved = x.clone()
        for _ in range(K):  # Algorithm 1: gradient ascent on h = c - gamma d
            moved = moved.detach().requires_grad_()
            value = cost(moved, y) - gamma * (moved - x).square().sum()
            (slope,) = torch.autograd.grad(value, moved)
            moved = moved + step * slope
        moved = moved.detach()
        optimizer.zero_grad()
        cost(moved, y).backward()
        optimizer.step()
        log_gamma = log_gamma - RATE * gamma * (RADIUS**2 - (moved - x).square().sum())
    return 1e6 * (time.perf_counter() - began) / steps


if __name__ == "__main__":
    count = int(sys.argv[1])
    main(20)
    print(min(main(count) for _ in range(3)))
