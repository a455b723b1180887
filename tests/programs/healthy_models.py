"""Models and training loops that are right, for questions that must not give a false alarm. ``PROGRAMS`` has them all.

Each program gets what compiles (``torch.compile`` with a backend, say), makes several calls, and returns the tensors
that it has computed. Beside those of this file there are the models of ``kernel_models.py`` and
``planted_numerics.py``, and, where transformers is installed, one of each of its architectures in ``ARCHITECTURES``,
with a small configuration and random weights.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import kernel_models
import planted_numerics
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils import checkpoint

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from cost_programs import UNet

Compile = Callable[[Any], Any]
Program = Callable[[Compile], Any]

PROGRAMS: Dict[str, Program] = {}
CALLS = 4


def program(run: Program) -> Program:
    """Register a program."""
    PROGRAMS[run.__name__] = run
    return run


def state_of(model: nn.Module) -> List[Tensor]:
    """Return parameters, buffers and gradients."""
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    return [*model.state_dict().values(), *gradients]


def trained(compile_it: Compile, model: nn.Module, loss_of: Callable[[Any], Tensor], lr: float = 1e-3) -> Any:
    """Train a model; ``loss_of`` gets what is compiled and makes the call."""
    compiled, optimizer = compile_it(model), torch.optim.AdamW(model.parameters(), lr=lr)
    losses = []
    for _ in range(CALLS):
        optimizer.zero_grad()
        loss = loss_of(compiled)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.detach())
    return losses, state_of(model)


def called(compile_it: Compile, make: Callable[[], Tuple[Any, Tuple[Any, ...]]]) -> Any:
    """Call the model of another list, and its backward where it has gradients."""
    function, arguments = make()
    compiled, found = compile_it(function), []
    for _ in range(CALLS):
        result = compiled(*arguments)
        several = result.values() if isinstance(result, dict) else result if isinstance(result, (tuple, list)) else ()
        tensors = [each for each in (*several, result) if isinstance(each, Tensor)]
        found += [each.detach().clone() for each in tensors]
        if tensors[0].requires_grad:
            tensors[0].float().square().mean().backward()
    return found, state_of(function) if isinstance(function, nn.Module) else []


@program
def two_layers(compile_it: Compile) -> Any:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    return trained(compile_it, model, lambda call: call(torch.randn(8, 16)).square().mean())


@program
def dropout_and_batch_norm(compile_it: Compile) -> Any:
    layers = [nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4)]
    return trained(compile_it, nn.Sequential(*layers), lambda call: call(torch.randn(8, 16)).square().mean())


@program
def residual_network(compile_it: Compile) -> Any:
    class Block(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
            self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))

        def forward(self, x: Tensor) -> Tensor:
            y = self.norms[0](self.layers[0](x)).relu()
            return (x + self.norms[1](self.layers[1](y))).relu()

    ends = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), *(Block(8) for _ in range(3)), *ends)

    def loss_of(call: Any) -> Tensor:
        return functional.cross_entropy(call(torch.randn(4, 3, 12, 12)), torch.randint(0, 5, (4,)))

    return trained(compile_it, model, loss_of)


def recurrent(kind: Any, compile_it: Compile) -> Any:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.states = nn.Embedding(30, 8), kind(8, 12, num_layers=2, batch_first=True, dropout=0.1)
            self.head = nn.Linear(12, 30)

        def forward(self, tokens: Tensor) -> Tensor:
            return self.head(self.states(self.words(tokens))[0])  # type: ignore[no-any-return]

    def loss_of(call: Any) -> Tensor:
        tokens = torch.randint(0, 30, (3, 7))
        return functional.cross_entropy(call(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return trained(compile_it, Tagger(), loss_of)


PROGRAMS["lstm"] = functools.partial(recurrent, nn.LSTM)
PROGRAMS["gru"] = functools.partial(recurrent, nn.GRU)


class Attention(nn.Module):
    """Causal attention by ``scaled_dot_product_attention``, with dropout, and a cache of keys and values."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.mixing, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, cache: Any = None) -> Any:
        q, k, v = (each.unflatten(-1, (4, -1)).transpose(1, 2) for each in self.mixing(x).chunk(3, -1))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        rate = 0.1 if self.training else 0.0
        mixed = functional.scaled_dot_product_attention(q, k, v, dropout_p=rate, is_causal=cache is None)
        return self.out(mixed.transpose(1, 2).flatten(2)), (k, v)


@program
def attention_with_dropout(compile_it: Compile) -> Any:
    return trained(compile_it, Attention(), lambda call: call(torch.randn(2, 6, 32))[0].square().mean())


@program
def decoding_with_a_cache(compile_it: Compile) -> Any:
    compiled, found = compile_it(Attention().eval()), []
    with torch.no_grad():
        x, cache = compiled(torch.randn(1, 5, 32))
        for _ in range(CALLS):
            x, cache = compiled(x[:, -1:], cache)
            found.append(x.clone())
    return found


@program
def diffusion(compile_it: Compile) -> Any:
    def loss_of(call: Any) -> Tensor:
        clean, noise, step = torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8), torch.rand(2, 1, 1, 1)
        noisy = clean * (1 - step).sqrt() + noise * step.sqrt()
        return functional.mse_loss(call(noisy, step.flatten() * 100), noise)

    return trained(compile_it, UNet(8), loss_of)


@program
def sampling_of_a_diffusion(compile_it: Compile) -> Any:
    compiled, x = compile_it(UNet(8).eval()), torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        for step in reversed(range(CALLS)):
            x = x - 0.1 * compiled(x, torch.tensor([float(step)])) + 0.01 * torch.randn_like(x)
    return x


@program
def variational_autoencoder(compile_it: Compile) -> Any:
    class Autoencoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down, self.up = nn.Linear(16, 8), nn.Linear(4, 16)

        def forward(self, x: Tensor) -> Tensor:
            mean, scale = self.down(x).chunk(2, -1)
            z = mean + torch.randn_like(mean) * (0.5 * scale).exp()
            divergence = -0.5 * (1 + scale - mean.square() - scale.exp()).mean()
            return functional.mse_loss(self.up(z), x) + divergence

    return trained(compile_it, Autoencoder(), lambda call: call(torch.randn(8, 16)))


class Experts(nn.Module):
    """A mixture of experts whose two best experts work on all tokens, without a branch on values."""

    def __init__(self, width: int = 16, experts: int = 4) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) / math.sqrt(width))
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) / math.sqrt(width))

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.router(x).softmax(-1).topk(2, -1)
        hidden = torch.einsum("td,tkdh->tkh", x, self.up[chosen]).relu()
        return (torch.einsum("tkh,tkhd->tkd", hidden, self.down[chosen]) * weights[..., None]).sum(1)


@program
def experts_by_topk(compile_it: Compile) -> Any:
    return trained(compile_it, Experts(), lambda call: call(torch.randn(10, 16)).square().mean())


@program
def experts_by_branches(compile_it: Compile) -> Any:
    class Branching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.router, self.experts = nn.Linear(16, 3), nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            weights, chosen = self.router(x).softmax(-1).max(-1)
            result = torch.zeros_like(x)
            for number, expert in enumerate(self.experts):
                tokens = torch.nonzero(chosen == number).squeeze(-1)
                if tokens.numel() > 0:
                    result = result.index_add(0, tokens, expert(x[tokens]) * weights[tokens].unsqueeze(-1))
            return result

    return trained(compile_it, Branching(), lambda call: call(torch.randn(10, 16)).square().mean())


@program
def policy_gradient(compile_it: Compile) -> Any:
    """A policy that draws its actions, in an environment that is plain Python."""
    policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
    compiled, optimizer = compile_it(policy), torch.optim.Adam(policy.parameters(), lr=0.01)
    returns = []
    for _ in range(2):
        state, rewards, chances = torch.zeros(4), [], []
        for _ in range(CALLS):
            choice = torch.distributions.Categorical(logits=compiled(state))
            action = choice.sample()
            chances.append(choice.log_prob(action))
            state = state * 0.9 + 0.1 * (action.item() * 2 - 1)
            rewards.append(float(state.sum()))
        optimizer.zero_grad()
        (-torch.stack(chances) * sum(rewards)).sum().backward()
        optimizer.step()
        returns.append(sum(rewards))
    return torch.tensor(returns), state_of(policy)


@program
def q_learning(compile_it: Compile) -> Any:
    """Two networks of one class, of which one follows the other; each is compiled."""
    online, target = (nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)) for _ in range(2))
    ours, theirs = compile_it(online), compile_it(target)
    optimizer = torch.optim.RMSprop(online.parameters(), lr=0.01)
    for _ in range(CALLS):
        states, actions = torch.randn(6, 4), torch.randint(0, 3, (6, 1))
        with torch.no_grad():
            goal = 0.9 * theirs(torch.randn(6, 4)).max(1, keepdim=True).values
        optimizer.zero_grad()
        functional.smooth_l1_loss(ours(states).gather(1, actions), goal).backward()
        optimizer.step()
        with torch.no_grad():
            for one, other in zip(target.parameters(), online.parameters()):
                one.lerp_(other, 0.1)
    return state_of(online), state_of(target)


@program
def adversarial(compile_it: Compile) -> Any:
    maker, judge = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    made, judged = compile_it(maker), compile_it(judge)
    optimizers = [torch.optim.Adam(each.parameters(), lr=0.01) for each in (maker, judge)]
    for _ in range(CALLS):
        fake = made(torch.randn(6, 4))
        for optimizer, values, sign in ((optimizers[1], fake.detach(), 1), (optimizers[0], fake, -1)):
            optimizer.zero_grad()
            loss = functional.softplus(sign * judged(values)).mean()
            if sign > 0:
                loss = loss + functional.softplus(-judged(torch.randn(6, 8))).mean()
            loss.backward()
            optimizer.step()
    return state_of(maker), state_of(judge)


@program
def whole_step(compile_it: Compile) -> Any:
    """Forward, backward and optimizer in one compiled function."""
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @compile_it
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return [step(torch.randn(5, 8)) for _ in range(CALLS)], state_of(model)


@program
def compiled_optimizer(compile_it: Compile) -> Any:
    model = nn.Linear(8, 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    step, call = compile_it(lambda: optimizer.step()), compile_it(model)
    for _ in range(CALLS):
        optimizer.zero_grad()
        call(torch.randn(5, 8)).square().mean().backward()
        step()
    return state_of(model)


@program
def accumulated_gradients(compile_it: Compile) -> Any:
    model = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 1))
    compiled, optimizer = compile_it(model), torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(2 * CALLS):
        (compiled(torch.randn(5, 8)).square().mean() / 2).backward()
        if number % 2:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    return state_of(model)


@program
def under_autocast(compile_it: Compile) -> Any:
    model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4))

    def loss_of(call: Any) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return call(torch.randn(6, 16)).float().square().mean()

    return trained(compile_it, model, loss_of)


@program
def in_bfloat16(compile_it: Compile) -> Any:
    model = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True).bfloat16()
    return trained(compile_it, model, lambda call: call(torch.randn(2, 5, 16).bfloat16()).float().square().mean())


@program
def with_checkpoints(compile_it: Compile) -> Any:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = checkpoint.checkpoint(layer, x, use_reentrant=False)
            return x

    return trained(compile_it, Checkpointed(), lambda call: call(torch.randn(6, 16)).square().mean())


@program
def averaged_weights(compile_it: Compile) -> Any:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    average = torch.optim.swa_utils.AveragedModel(model)
    compiled, optimizer = compile_it(model), torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(CALLS):
        optimizer.zero_grad()
        compiled(torch.randn(6, 8)).square().mean().backward()
        optimizer.step()
        average.update_parameters(model)
    return state_of(model), state_of(average)


@program
def graph_network(compile_it: Compile) -> Any:
    class Messages(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.send, self.update = nn.Linear(8, 8), nn.Linear(16, 8)

        def forward(self, x: Tensor, edges: Tensor) -> Tensor:
            got = torch.zeros_like(x).index_add(0, edges[1], self.send(x)[edges[0]])
            return self.update(torch.cat([x, got], -1)).relu()

    def loss_of(call: Any) -> Tensor:
        return call(torch.randn(7, 8), torch.randint(0, 7, (2, 12))).square().mean()

    return trained(compile_it, Messages(), loss_of)


@program
def contrastive(compile_it: Compile) -> Any:
    images, texts = nn.Linear(12, 8), nn.EmbeddingBag(20, 8)

    def similarity(x: Tensor, tokens: Tensor) -> Tensor:
        return functional.normalize(images(x), dim=-1) @ functional.normalize(texts(tokens), dim=-1).T

    compiled = compile_it(similarity)
    optimizer = torch.optim.SGD([*images.parameters(), *texts.parameters()], lr=0.1)
    for _ in range(CALLS):
        optimizer.zero_grad()
        scores = compiled(torch.randn(5, 12), torch.randint(0, 20, (5, 3)))
        functional.cross_entropy(scores, torch.arange(5)).backward()
        optimizer.step()
    return state_of(images), state_of(texts)


@program
def other_sizes(compile_it: Compile) -> Any:
    model = nn.Conv1d(3, 6, 3, padding=1)
    sizes = iter((8, 12, 9, 12))
    return trained(compile_it, model, lambda call: call(torch.randn(2, 3, next(sizes))).square().mean())


def tokens(*more: str) -> Callable[[], Dict[str, Tensor]]:
    """Return what makes the inputs of a model of language; ``more`` are other names that get tokens."""
    return lambda: {name: torch.randint(3, 60, (2, 9)) for name in ("input_ids", *more)}


def pixels(size: int) -> Callable[[], Dict[str, Tensor]]:
    return lambda: {"pixel_values": torch.randn(2, 3, size, size)}


SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
ENCODER = {**SMALL, "type_vocab_size": 2}
GROUPED = {**SMALL, "num_key_value_heads": 2}
WITH_HEADS = {**GROUPED, "head_dim": 8}
IMAGES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
IMAGES = {**IMAGES, "image_size": 16, "patch_size": 8}
TWO_SIDED = {"vocab_size": 64, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 32}
TWO_SIDED = {**TWO_SIDED, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64}
TWO_SIDED = {**TWO_SIDED, "decoder_ffn_dim": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TWO_SIDED = {**TWO_SIDED, "decoder_start_token_id": 1, "forced_eos_token_id": 2}
NARROW = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32, "bos_token_id": 1}
NARROW = {**NARROW, "eos_token_id": 2}

ARCHITECTURES: Dict[str, Tuple[str, Dict[str, Any], Callable[[], Dict[str, Any]]]] = {
    "Bert": ("BertForMaskedLM", ENCODER, tokens()),
    "Roberta": ("RobertaForMaskedLM", {**ENCODER, "max_position_embeddings": 40}, tokens()),
    "DistilBert": (
        "DistilBertForMaskedLM",
        {"vocab_size": 64, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 32},
        tokens(),
    ),
    "Albert": ("AlbertForMaskedLM", {**ENCODER, "embedding_size": 16}, tokens()),
    "Electra": ("ElectraForMaskedLM", {**ENCODER, "embedding_size": 16}, tokens()),
    "DebertaV2": ("DebertaV2ForMaskedLM", ENCODER, tokens()),
    "GPT2": ("GPT2LMHeadModel", NARROW, tokens()),
    "GPTNeoX": ("GPTNeoXForCausalLM", SMALL, tokens()),
    "OPT": ("OPTForCausalLM", {**SMALL, "ffn_dim": 64, "word_embed_proj_dim": 32}, tokens()),
    "Bloom": ("BloomForCausalLM", {**SMALL, "n_layer": 2, "n_head": 4}, tokens()),
    "Falcon": ("FalconForCausalLM", SMALL, tokens()),
    "Phi": ("PhiForCausalLM", SMALL, tokens()),
    "Llama": ("LlamaForCausalLM", GROUPED, tokens()),
    "Mistral": ("MistralForCausalLM", {**WITH_HEADS, "sliding_window": 4}, tokens()),
    "Mixtral": ("MixtralForCausalLM", {**WITH_HEADS, "num_local_experts": 4}, tokens()),
    "Qwen3": ("Qwen3ForCausalLM", WITH_HEADS, tokens()),
    "Gemma2": ("Gemma2ForCausalLM", WITH_HEADS, tokens()),
    "Mamba": ("MambaForCausalLM", {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2}, tokens()),
    "T5": (
        "T5ForConditionalGeneration",
        {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
        tokens("decoder_input_ids"),
    ),
    "Bart": ("BartForConditionalGeneration", TWO_SIDED, tokens("decoder_input_ids")),
    "ViT": ("ViTForImageClassification", IMAGES, pixels(16)),
    "Swin": (
        "SwinForImageClassification",
        {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4},
        pixels(32),
    ),
    "ConvNext": (
        "ConvNextForImageClassification",
        {"num_stages": 2, "hidden_sizes": [8, 16], "depths": [1, 1]},
        pixels(32),
    ),
    "ResNet": (
        "ResNetForImageClassification",
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"},
        pixels(32),
    ),
    "CLIP": (
        "CLIPModel",
        {"text_config": SMALL, "vision_config": IMAGES, "projection_dim": 16},
        lambda: {**tokens()(), **pixels(16)()},
    ),
    "Whisper": (
        "WhisperForConditionalGeneration",
        {**TWO_SIDED, "num_mel_bins": 8, "max_source_positions": 10, "max_target_positions": 32},
        lambda: {"input_features": torch.randn(2, 8, 20), "decoder_input_ids": torch.randint(3, 60, (2, 5))},
    ),
    "Wav2Vec2": (
        "Wav2Vec2ForCTC",
        {
            **{name: each for name, each in SMALL.items() if name != "max_position_embeddings"},
            "conv_dim": [8, 8],
            "conv_stride": [5, 2],
            "conv_kernel": [10, 3],
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 8,
            "num_conv_pos_embedding_groups": 2,
            "mask_time_prob": 0.0,
        },
        lambda: {"input_values": torch.randn(2, 400)},
    ),
}


def first_output(result: Any) -> Tensor:
    """Return the first tensor of numbers of what a model of transformers returns."""
    found = [each for each in result.to_tuple() if isinstance(each, Tensor) and each.is_floating_point()]
    return found[0]


def architecture(compile_it: Compile, name: str, *, training: bool) -> Any:
    """Run a small model of transformers, in eval mode without gradients, or train it."""
    import transformers

    model_class, sizes, inputs = ARCHITECTURES[name]
    model = getattr(transformers, model_class)(getattr(transformers, f"{name}Config")(**sizes))
    if training:
        return trained(compile_it, model.train(), lambda call: first_output(call(**inputs())).square().mean())
    compiled = compile_it(model.eval())
    with torch.no_grad():
        return [first_output(compiled(**inputs())).clone() for _ in range(CALLS)]


def generated(compile_it: Compile) -> Any:
    """Generate tokens with GPT-2 and its cache, by calls of the model."""
    import transformers

    model: Any = compile_it(transformers.GPT2LMHeadModel(transformers.GPT2Config(**NARROW)).eval())
    with torch.no_grad():
        token, past, found = torch.randint(3, 60, (1, 5)), None, []
        for _ in range(2 * CALLS):
            result = model(input_ids=token, past_key_values=past, use_cache=True)
            past, token = result.past_key_values, result.logits[:, -1:].argmax(-1)
            found.append(token.clone())
    return found


TRAINED = ("Bert", "GPT2", "Llama", "Mixtral", "T5", "ViT", "ConvNext", "Wav2Vec2")
"""The architectures that are trained, too, with the dropout of their configuration."""

for _list in (kernel_models.MODELS, planted_numerics.HEALTHY):
    for _name in _list:
        _make: Any = getattr(planted_numerics if _list is planted_numerics.HEALTHY else kernel_models, _name)
        PROGRAMS[_name] = functools.partial(called, make=_make)
if importlib.util.find_spec("transformers") is not None:
    PROGRAMS["GPT2 generates"] = generated
    for _name in ARCHITECTURES:
        PROGRAMS[_name] = functools.partial(architecture, name=_name, training=False)
    for _name in TRAINED:
        PROGRAMS[f"{_name} trained"] = functools.partial(architecture, name=_name, training=True)
