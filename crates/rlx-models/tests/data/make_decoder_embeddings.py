"""Makes fixtures/hf_models/gemma3_embedding, a tiny Gemma 3 with random weights whose tokens see each other both ways, with
what Hugging Face transformers computes in float32 with it; and qwen3_embedding.safetensors, the same of fixtures/hf_models/qwen3.
`python make_decoder_embeddings.py` beside the file."""

import pathlib
import shutil

import torch
from safetensors.torch import save_file
from transformers import AutoModel, Gemma3TextConfig, Gemma3TextModel

here = pathlib.Path(__file__).parent
fixtures = here.parent / "fixtures/hf_models"
LENGTHS = [17, 5, 1, 30]


def expected(model):
    ids = torch.randint(3, 314, (len(LENGTHS), max(LENGTHS)))
    mask = (torch.arange(max(LENGTHS))[None] < torch.tensor(LENGTHS)[:, None]).long()
    ids = ids * mask
    with torch.no_grad():
        hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state * mask[..., None]
    mean = hidden.sum(1) / mask.sum(1, keepdim=True)
    last = hidden[torch.arange(len(LENGTHS)), mask.sum(1) - 1]
    return {
        "input_ids": ids.to(torch.int32),
        "attention_mask": mask.to(torch.int32),
        "last_hidden_state": hidden.contiguous(),
        "mean_pooled_normalized": torch.nn.functional.normalize(mean, dim=-1),
        "last_pooled_normalized": torch.nn.functional.normalize(last, dim=-1),
    }


torch.manual_seed(3)
config = Gemma3TextConfig(
    vocab_size=314, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=2,
    num_key_value_heads=1, head_dim=16, layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    sliding_window=10, use_bidirectional_attention=True, max_position_embeddings=128, query_pre_attn_scalar=16,
    attn_implementation="eager",
)
model = Gemma3TextModel(config).eval()
for name, weight in model.named_parameters():
    torch.nn.init.normal_(weight, std=0.2 if weight.ndim > 1 else 0.1)
out = fixtures / "gemma3_embedding"
model.save_pretrained(out)
save_file(expected(model), out / "expected.safetensors")

qwen = AutoModel.from_pretrained(fixtures / "qwen3", attn_implementation="eager", dtype=torch.float32).eval()
save_file(expected(qwen), here / "qwen3_embedding.safetensors")
