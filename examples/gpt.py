"""Trains a small GPT to write text, letter by letter, in one file.

    python examples/gpt.py                      # learns from the Python files of Rushlight itself
    python examples/gpt.py --text novel.txt     # or from any text
    python examples/gpt.py --steps 2000         # longer, and better

The network is that of GPT-2 (Radford et al. 2019), smaller. It reads the last 64 letters and gives
the chances of the next one; to write, it draws a letter from these, appends it and reads again.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

CONTEXT = 64  # letters that the network sees, T below
WIDTH = 96  # numbers that stand for each of them, C below
HEADS = 4
BLOCKS = 3


class Attention(nn.Module):
    """Lets every letter gather what it needs from the letters before it."""

    def __init__(self) -> None:
        super().__init__()
        self.ask = nn.Linear(WIDTH, 3 * WIDTH)  # query, key and value of all heads at once
        self.answer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, C = x.shape
        q, k, v = self.ask(x).view(B, T, 3, HEADS, C // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, heads, T, C / heads)
        return self.answer(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.think = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.think(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, letters: int) -> None:
        super().__init__()
        self.letter = nn.Embedding(letters, WIDTH)
        self.place = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, letters, bias=False)
        for param in self.parameters():
            if param.dim() == 2:
                nn.init.normal_(param, std=0.02)
        self.head.weight = self.letter.weight  # one table to read letters and to write them

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        x = self.letter(letters) + self.place(torch.arange(letters.shape[1]))  # (B, T, C)
        return self.head(self.norm(self.blocks(x)))  # (B, T, number of letters)

    @torch.no_grad()
    def write(self, letters: torch.Tensor, count: int, top: int = 10) -> torch.Tensor:
        """Appends `count` letters, each drawn from the `top` likeliest."""
        for _ in range(count):
            logits = self(letters[:, -CONTEXT:])[:, -1]  # (B, number of letters)
            best = logits.topk(min(top, logits.shape[-1]))
            drawn = torch.multinomial(best.values.softmax(-1), 1)
            letters = torch.cat([letters, best.indices.gather(-1, drawn)], dim=1)
        return letters


def read_text(path: Path | None) -> str:
    if path is not None:
        return path.read_text()
    sources = sorted(Path(torch.__file__).parent.rglob("*.py"))
    return "\n".join(source.read_text() for source in sources)


def rate_at(step: int, steps: int, highest: float = 2e-3) -> float:
    """Climbs for a tenth of the steps, then falls along half a cosine."""
    warmup = max(1, steps // 10)
    if step < warmup:
        return highest * (step + 1) / warmup
    return highest * (0.55 + 0.45 * math.cos(math.pi * (step - warmup) / (steps - warmup)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="what to learn from")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--write", type=int, default=400, help="letters to write at the end")
    options = parser.parse_args()
    torch.manual_seed(0)

    text = read_text(options.text)
    alphabet = sorted(set(text))
    number = {letter: i for i, letter in enumerate(alphabet)}
    data = torch.tensor([number[letter] for letter in text])
    windows = data.unfold(0, CONTEXT + 1, 1)  # (windows, T + 1), a view: no letter is copied
    print(f"{len(text):,} letters, {len(alphabet)} different ones")

    net = GPT(len(alphabet))
    matrices = [param for param in net.parameters() if param.dim() == 2]
    others = [param for param in net.parameters() if param.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
        betas=(0.9, 0.95),
    )
    for step in range(options.steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, options.steps)
        batch = windows[torch.randint(len(windows), (32,))]  # (B, T + 1)
        logits = net(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0 or step == options.steps - 1:
            print(f"step {step:4}  loss {loss.item():.3f}", flush=True)

    start = torch.tensor([[number.get("\n", 0)]])
    print("".join(alphabet[i] for i in net.write(start, options.write)[0].tolist()))


if __name__ == "__main__":
    main()
