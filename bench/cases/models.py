"""Layers, optimizers and training steps."""

from __future__ import annotations

from typing import Any

from cases.case import Call, case


@case("Linear(16, 16) forward + backward, 4 rows", "models", 0.30)
def linear_small(torch: Any) -> Call:
    layer, x = torch.nn.Linear(16, 16), torch.randn(4, 16)
    return lambda: layer(x).sum().backward()


def parameters_with_grads(torch: Any) -> list[Any]:
    parameters = [torch.nn.Parameter(torch.randn(8, 8)) for _ in range(20)]
    for parameter in parameters:
        parameter.grad = torch.randn(8, 8)
    return parameters


@case("Adam step, 20 parameters of 8x8", "models", 0.30)
def adam_step(torch: Any) -> Call:
    return torch.optim.Adam(parameters_with_grads(torch), lr=1e-3).step


@case("SGD step, 20 parameters of 8x8", "models", 0.30)
def sgd_step(torch: Any) -> Call:
    return torch.optim.SGD(parameters_with_grads(torch), lr=1e-6).step


def training_step(torch: Any, net: Any, x: Any, labels: Any) -> Call:
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    cross_entropy = torch.nn.functional.cross_entropy

    def call() -> None:
        optimizer.zero_grad()
        cross_entropy(net(x), labels).backward()
        optimizer.step()

    return call


@case("10-32-3 MLP training step, batch 16", "models", 0.35)
def mlp_step(torch: Any) -> Call:
    nn = torch.nn
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
    return training_step(torch, net, torch.randn(16, 10), torch.randint(0, 3, (16,)))


@case("policy gradient step, 4-128-2 MLP, one state", "models", 0.40)
def policy_step(torch: Any) -> Call:
    nn = torch.nn
    policy = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 2))
    state = torch.randn(1, 4)

    def call() -> None:
        actions = torch.distributions.Categorical(torch.softmax(policy(state), dim=1))
        action = actions.sample()
        (-actions.log_prob(action) * 0.5).sum().backward()

    return call


@case("Normal(64, 8) rsample + log_prob", "models", 0.40)
def normal_actions(torch: Any) -> Call:
    mean, std = torch.randn(64, 8, requires_grad=True), torch.rand(64, 8) + 0.1

    def call() -> None:
        actions = torch.distributions.Normal(mean, std)
        actions.log_prob(actions.rsample())

    return call


@case("conv 3x3, 64 channels, 8x64x56x56, training step", "models", 1.0)
def conv_step(torch: Any) -> Call:
    layer = torch.nn.Conv2d(64, 64, 3, padding=1)
    x, grad = torch.randn(8, 64, 56, 56, requires_grad=True), torch.randn(8, 64, 56, 56)

    def call() -> None:
        x.grad = None  # as in the middle of a network, where the input's gradient is passed on
        layer.zero_grad()
        layer(x).backward(grad)

    return call


@case("MNIST CNN training step, batch 64", "models", 0.9)
def mnist_step(torch: Any) -> Call:
    nn = torch.nn
    net = nn.Sequential(  # the network of the PyTorch examples
        nn.Conv2d(1, 32, 3),  # (64, 32, 26, 26)
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),  # (64, 64, 24, 24)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (64, 64, 12, 12)
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(9216, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 10),
    )
    return training_step(torch, net, torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,)))


def char_gpt(torch: Any, vocabulary: int, width: int, heads: int, layers: int, length: int) -> Any:
    """A GPT in the style of nanoGPT's smallest, its weights not tied."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch = x.shape[0]
            q, k, v = (
                part.view(batch, length, heads, width // heads).transpose(1, 2)
                for part in self.qkv(self.norm1(x)).split(width, dim=2)
            )  # (batch, heads, length, width / heads)
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.places = nn.Embedding(length, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.places(torch.arange(length))
            return self.head(self.norm(self.blocks(x))).view(-1, vocabulary)

    return GPT()


@case("char-GPT training step, 4 layers of 128, 16x64", "models", 0.9)
def gpt_step(torch: Any) -> Call:
    net = char_gpt(torch, vocabulary=65, width=128, heads=4, layers=4, length=64)
    tokens = torch.randint(0, 65, (16, 64))
    return training_step(torch, net, tokens, torch.randint(0, 65, (16 * 64,)))


def char_lstm(torch: Any, vocabulary: int, width: int) -> Any:
    nn = torch.nn

    class CharLSTM(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.lstm = nn.LSTM(width, width, batch_first=True)
            self.head = nn.Linear(width, vocabulary)

        def forward(self, tokens: Any) -> Any:
            output, _ = self.lstm(self.tokens(tokens))  # (batch, length, width)
            return self.head(output).view(-1, vocabulary)

    return CharLSTM()


def lstm_step(torch: Any, width: int) -> Call:
    net, tokens = char_lstm(torch, 65, width), torch.randint(0, 65, (16, 32))
    return training_step(torch, net, tokens, torch.randint(0, 65, (16 * 32,)))


@case("char-LSTM of 128 training step, 16x32", "models", 0.8)
def lstm_step_128(torch: Any) -> Call:
    return lstm_step(torch, 128)


@case("char-LSTM of 256 training step, 16x32", "models", 0.9)
def lstm_step_256(torch: Any) -> Call:
    return lstm_step(torch, 256)


@case("char-LSTM of 256, one sequence of 32 tokens, no gradients", "models", 0.9)
def lstm_inference(torch: Any) -> Call:
    net, tokens = char_lstm(torch, 65, 256).eval(), torch.randint(0, 65, (1, 32))

    def call() -> None:
        with torch.no_grad():
            net(tokens)

    return call
