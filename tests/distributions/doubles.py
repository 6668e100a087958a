import rushlight as torch


def t(x):
    return torch.tensor(x, dtype=torch.float64)
