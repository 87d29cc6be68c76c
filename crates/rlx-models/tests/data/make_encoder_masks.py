"""Makes encoder_masks.safetensors: what Hugging Face transformers computes in float32 with the encoders of
fixtures/hf_models for masks that are padded on the left or have holes, and for padding tokens that are not masked.
`python make_encoder_masks.py` beside the file."""

import pathlib

import torch
from safetensors.torch import save_file
from transformers import AutoModel

here = pathlib.Path(__file__).parent
PAD = {"nomic_bert": 0, "modernbert": 0, "xlm_roberta": 1}
out = {}
for name, pad in PAD.items():
    model = AutoModel.from_pretrained(here.parent / "fixtures/hf_models" / name, attn_implementation="eager").eval()
    torch.manual_seed(1)
    ids = torch.randint(4, 314, (5, 24))
    mask = torch.ones_like(ids)
    # Padded on the left, with padding tokens and without.
    mask[0, :9] = 0
    ids[0, :9] = pad
    mask[1, :4] = 0
    # Holes, within the reach of a local layer.
    mask[2, 7:] = 0
    mask[2, 2] = mask[2, 4] = 0
    ids[2, 4] = pad
    # Padding tokens that are seen.
    ids[3, 3] = ids[3, 17] = pad
    with torch.no_grad():
        hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state * mask[..., None]
    out[f"{name}.input_ids"] = ids.to(torch.int32)
    out[f"{name}.attention_mask"] = mask.to(torch.int32)
    out[f"{name}.last_hidden_state"] = hidden.contiguous()
save_file(out, here / "encoder_masks.safetensors")
