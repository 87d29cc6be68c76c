"""Makes bert_masks.safetensors: what Hugging Face transformers computes with fixtures/hf_models/bert in float32 for masks
that are padded on the left, have holes, or are empty. `python make_bert_masks.py` beside the file."""

import pathlib

import torch
from safetensors.torch import save_file
from transformers import BertModel

here = pathlib.Path(__file__).parent
model = BertModel.from_pretrained(here.parent / "fixtures/hf_models/bert", attn_implementation="eager").eval()
torch.manual_seed(1)
ids = torch.randint(0, 314, (4, 12))
mask = torch.tensor([
    [0] * 5 + [1] * 7,
    [1] * 12,
    [1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0],
    [0] * 11 + [1],
])
with torch.no_grad():
    hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state * mask[..., None]
save_file(
    {"input_ids": ids.to(torch.int32), "attention_mask": mask, "last_hidden_state": hidden.contiguous()},
    here / "bert_masks.safetensors",
)
