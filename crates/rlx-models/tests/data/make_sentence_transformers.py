"""Makes sentence_transformers.json and .safetensors: folders on top of fixtures/hf_models with a tokenizer in this folder,
and the vectors that sentence-transformers 6.2 gives for them in float32.

    pip install sentence-transformers && python make_sentence_transformers.py
"""

import json
import pathlib
import shutil
import tempfile

import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer

HERE = pathlib.Path(__file__).parent
TEXTS = ["a cat", "The Cat sat on the mat!", "", "Unbelievable numbers: 12, 345 and 6789 are cut in more than one way."]
OLD = "sentence_transformers.models."
TOKENIZER = {
    "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64, "unk_token": "[UNK]", "pad_token": "[PAD]",
    "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]",
}
PROMPTS = {"prompts": {"query": "the text: ", "document": ""}}


def modules(*kinds, names=None):
    names = names or [OLD + kind for kind in kinds]
    paths = [f"{i}_{kind}" if i else "" for i, kind in enumerate(kinds)]
    return [{"idx": i, "name": str(i), "path": p, "type": n} for i, (p, n) in enumerate(zip(paths, names))]


def case(name, pooling, kinds=("Transformer", "Pooling"), prompt=None, dims=None, names=None, fixture="bert", **files):
    out = {"modules.json": modules(*kinds, names=names), "1_Pooling/config.json": pooling, "tokenizer_config.json": TOKENIZER}
    out |= {"config_sentence_transformers.json": PROMPTS} | files
    return {"name": name, "fixture": fixture, "files": out, "prompt": prompt, "dims": dims}


DENSE = {
    "2_Dense/config.json": {"in_features": 96, "out_features": 40, "bias": True, "activation_function": "torch.nn.modules.activation.Tanh"},
    "3_Dense/config.json": {"in_features": 40, "out_features": 8, "bias": False, "activation_function": "torch.nn.modules.linear.Identity"},
}
LINEAR = {"bias": False, "activation_function": "torch.nn.modules.linear.Identity"}
GEMMA = {
    "2_Dense/config.json": {"in_features": 32, "out_features": 48} | LINEAR,
    "3_Dense/config.json": {"in_features": 48, "out_features": 32} | LINEAR,
}
NEW = ["base.modules.transformer.Transformer", "sentence_transformer.modules.pooling.Pooling", "base.modules.normalize.Normalize"]
CASES = [
    case("mean", {"embedding_dimension": 96, "pooling_mode": "mean"}, ("Transformer", "Pooling", "Normalize")),
    case(
        "new_names",
        {"embedding_dimension": 96, "pooling_mode": "mean"},
        ("Transformer", "Pooling", "Normalize"),
        names=["sentence_transformers." + name for name in NEW],
        prompt="query",
    ),
    case(
        "default_prompt",
        {"word_embedding_dimension": 96, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
        **{"config_sentence_transformers.json": PROMPTS | {"default_prompt_name": "query"}},
    ),
    case("in_order", {"embedding_dimension": 96, "pooling_mode": ["mean", "max", "cls"]}),
    case("flags", {"word_embedding_dimension": 96, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}),
    case("no_flag", {"word_embedding_dimension": 96, "pooling_mode_mean_tokens": False}),
    case("last", {"embedding_dimension": 96, "pooling_mode": "lasttoken"}, prompt="query"),
    case(
        "without_prompt",
        {"embedding_dimension": 96, "pooling_mode": ["weightedmean", "mean_sqrt_len_tokens", "cls", "lasttoken"], "include_prompt": False},
        prompt="query",
    ),
    case("weighted", {"embedding_dimension": 96, "pooling_mode": ["weightedmean", "mean_sqrt_len_tokens"]}),
    case(
        "dense",
        {"embedding_dimension": 96, "pooling_mode": "mean"},
        ("Transformer", "Pooling", "Dense", "Dense", "Normalize"),
        **DENSE,
    ),
    case(
        "short",
        {"embedding_dimension": 96, "pooling_mode": "mean"},
        **{"sentence_bert_config.json": {"max_seq_length": 8, "do_lower_case": True}},
    ),
    case("dims", {"embedding_dimension": 96, "pooling_mode": "mean"}, ("Transformer", "Pooling", "Normalize"), dims=24),
    case("nomic", {"embedding_dimension": 128, "pooling_mode": "mean"}, fixture="nomic_bert"),
    case(
        "qwen3",
        {"embedding_dimension": 64, "pooling_mode": "lasttoken"},
        ("Transformer", "Pooling", "Normalize"),
        dims=16,
        prompt="query",
        fixture="qwen3",
    ),
    case(
        "gemma",
        {"embedding_dimension": 32, "pooling_mode": "mean"},
        ("Transformer", "Pooling", "Dense", "Dense", "Normalize"),
        fixture="gemma3_embedding",
        prompt="query",
        **GEMMA,
    ),
]


def numbers(*shape):
    return ((torch.arange(torch.Size(shape).numel()) * 37 % 101 - 50) / 80.0).reshape(shape)


def write(folder, fixture, files):
    for name in ["config.json", "model.safetensors"]:
        shutil.copy(HERE.parent / "fixtures/hf_models" / fixture / name, folder)
    shutil.copy(HERE / "wordpiece_tokenizer.json", folder / "tokenizer.json")
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value))
        if "Dense" in name:
            weights = {"linear.weight": numbers(value["out_features"], value["in_features"])}
            if value["bias"]:
                weights["linear.bias"] = numbers(value["out_features"])
            save_file(weights, path.parent / "model.safetensors")


vectors = {}
for c in CASES:
    with tempfile.TemporaryDirectory() as folder:
        write(pathlib.Path(folder), c["fixture"], c["files"])
        model = SentenceTransformer(folder, device="cpu", truncate_dim=c["dims"], model_kwargs={"attn_implementation": "eager"})
        out = model.encode(
            TEXTS, prompt_name=c["prompt"], convert_to_tensor=True, batch_size=2, normalize_embeddings=c["dims"] is not None
        )
        vectors[c["name"]] = out.float().contiguous()
        print(c["name"], tuple(out.shape), model.max_seq_length)
save_file(vectors, HERE / "sentence_transformers.safetensors")
text = json.dumps({"texts": TEXTS, "cases": CASES}, separators=(",", ":"))
(HERE / "sentence_transformers.json").write_text(text + "\n")
