"""Write the control model as GGUF, the format of llama.cpp: `control_gguf.py FILE.gguf`.

It needs the package `gguf`. Weights are in single precision. The control model's tokenizer keeps
Indic vowel signs in a word when it splits a text into words. llama.cpp has no such way of
splitting, so the file names that of GPT-2, which splits Latin and Cyrillic texts without digits in
the same way.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file

MODEL = Path(__file__).parents[1] / "genprobe" / "engines" / "control" / "model"
NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "input_layernorm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
}


def interleaved(weights: np.ndarray, heads: int) -> np.ndarray:
    """Return the rows of a projection in the order in which llama.cpp rotates pairs (RoPE)."""
    rows, columns = weights.shape
    halves = weights.reshape(heads, 2, rows // heads // 2, columns)
    return halves.swapaxes(1, 2).reshape(rows, columns)


def convert(folder: Path, path: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    heads = config["num_attention_heads"]
    out = gguf.GGUFWriter(path, "llama")
    out.add_name("control")
    out.add_context_length(config["max_position_embeddings"])
    out.add_embedding_length(config["hidden_size"])
    out.add_block_count(config["num_hidden_layers"])
    out.add_feed_forward_length(config["intermediate_size"])
    out.add_head_count(heads)
    out.add_head_count_kv(config["num_key_value_heads"])
    out.add_rope_dimension_count(config["head_dim"])
    out.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    out.add_layer_norm_rms_eps(config["rms_norm_eps"])
    out.add_vocab_size(config["vocab_size"])
    out.add_file_type(gguf.LlamaFileType.ALL_F32)
    words = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].__getitem__)
    special = {token["content"] for token in tokenizer["added_tokens"]}
    kinds = gguf.TokenType
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(words)
    out.add_token_types([kinds.CONTROL if word in special else kinds.NORMAL for word in words])
    merges = tokenizer["model"]["merges"]
    out.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    out.add_bos_token_id(config["bos_token_id"])
    out.add_eos_token_id(config["eos_token_id"])
    out.add_pad_token_id(config["pad_token_id"])
    out.add_add_bos_token(False)  # the chat template writes it
    out.add_chat_template((folder / "chat_template.jinja").read_text(encoding="utf-8"))
    for name, weights in load_file(folder / "model.safetensors").items():
        layer = name.removeprefix("model.layers.").partition(".")
        own = NAMES.get(name) or f"blk.{layer[0]}.{NAMES[layer[2]]}"
        weights = weights.astype(np.float32)
        if own.endswith(("attn_q.weight", "attn_k.weight")):
            weights = interleaved(weights, heads)
        out.add_tensor(own, weights)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", type=Path, default=MODEL)
    arguments = parser.parse_args()
    convert(arguments.model, arguments.out)
