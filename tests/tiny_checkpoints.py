"""Writes tiny random checkpoints of real architectures: what the local-model tests load, offline, in seconds.

`python tests/tiny_checkpoints.py FOLDER` writes all of them; `checkpoint(kind)` writes one on first use and keeps it in the cache folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

VOCABULARY = 512
HIDDEN = 64
IMAGE_SIDE = 32
PATCH = 8
WORDS = """what colour is the truck in the picture? orange blue red green yes no maybe the answer is a dog a cat two three four people
on the street how many lines can you read question options user assistant system which letter stands before the right option one of them
there is an image of a bus near the tree left right above below inside (A) (B) (C) (D) 0 1 2 3 4 5 6 7 8 9 N/A"""
CHAT = (
    "{% for message in messages %}<|turn|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}{% endfor %}"
    "{% endif %}<|end|>\n{% endfor %}{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)


def tokenizer(bos: bool = False, extra: dict[str, str] | None = None, end: str = "") -> Any:
    """A byte-level BPE tokenizer trained on a few words; no text is unknown to it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    special = [
        "<pad>",
        "<s>",
        "</s>",
        "<|turn|>",
        "<|end|>",
        "<image>",
        "<fake_token_around_image>",
        "<global-img>",
        "<end_of_utterance>",
    ]
    special += [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
    special += ["<start_of_image>", "<end_of_image>", "<|vision_start|>", "<|vision_end|>", "<|video_pad|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    inner.train_from_iterator(WORDS.splitlines() * 4, trainer)
    if bos:
        inner.post_processor = processors.TemplateProcessing(
            single=f"<s> $A {end}".strip(),
            special_tokens=[(token, inner.token_to_id(token)) for token in ("<s>", "<|end|>")],
        )
    names = {"bos_token": "<s>", "eos_token": "<|end|>", "pad_token": "<pad>", "extra_special_tokens": extra or {}}
    return PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=4096, padding_side="left", **names)


def llama_config(**changes: Any) -> dict[str, Any]:
    """The language half that most of them share."""
    return {
        "model_type": "llama",
        "vocab_size": VOCABULARY + 64,
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 1024,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 4,
        "initializer_range": 0.3,
        **changes,
    }


def vision_config(model_type: str, **changes: Any) -> dict[str, Any]:
    """The seeing half."""
    return {
        "model_type": model_type,
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": IMAGE_SIDE,
        "patch_size": PATCH,
        **changes,
    }


def write_text(folder: Path) -> None:
    """A llama with a chat template."""
    import transformers as t

    tok = tokenizer()
    tok.chat_template = CHAT
    t.LlamaForCausalLM(t.LlamaConfig(**llama_config())).save_pretrained(folder)
    tok.save_pretrained(folder)


def write_base(folder: Path) -> None:
    """A gpt2 without chat template (learned positions, context 128)."""
    import transformers as t

    special = {"bos_token_id": 1, "eos_token_id": 4, "pad_token_id": 0}
    config = t.GPT2Config(
        vocab_size=VOCABULARY + 64,
        n_positions=128,
        n_embd=HIDDEN,
        n_layer=2,
        n_head=4,
        initializer_range=0.3,
        **special,
    )
    t.GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)


def write_sliding(folder: Path) -> None:
    """A mistral with a sliding window shorter than its prompts."""
    import transformers as t

    config = t.MistralConfig(**{**llama_config(), "model_type": "mistral", "sliding_window": 16})
    t.MistralForCausalLM(config).save_pretrained(folder)
    tok = tokenizer()
    tok.chat_template = CHAT
    tok.save_pretrained(folder)


def write_t5(folder: Path) -> None:
    """A text encoder-decoder."""
    import transformers as t

    t.T5ForConditionalGeneration(t.T5Config(**t5_config())).save_pretrained(folder)
    tokenizer().save_pretrained(folder)


def t5_config() -> dict[str, Any]:
    """The encoder-decoder language half."""
    return {
        "model_type": "t5",
        "vocab_size": VOCABULARY + 64,
        "d_model": HIDDEN,
        "d_kv": 16,
        "d_ff": 2 * HIDDEN,
        "num_layers": 2,
        "num_heads": 4,
        "decoder_start_token_id": 0,
        "pad_token_id": 0,
        "eos_token_id": 4,
        "initializer_factor": 3.0,
    }


def write_llava(folder: Path) -> None:
    """LLaVA: CLIP and llama."""
    import transformers as t

    tok = tokenizer(bos=True)
    config = t.LlavaConfig(
        vision_config=vision_config("clip_vision_model", projection_dim=HIDDEN),
        text_config=llama_config(),
        image_token_index=tok.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
        image_seq_length=(IMAGE_SIDE // PATCH) ** 2,
    )
    t.LlavaForConditionalGeneration(config).save_pretrained(folder)
    side = {"height": IMAGE_SIDE, "width": IMAGE_SIDE}
    images = t.CLIPImageProcessorPil(size={"shortest_edge": IMAGE_SIDE}, crop_size=side)
    t.LlavaProcessor(
        images,
        tok,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=CHAT,
    ).save_pretrained(folder)


def write_idefics3(folder: Path) -> None:
    """SmolVLM's architecture: SigLIP, pixel shuffle and llama."""
    import transformers as t

    tok = tokenizer()
    config = t.Idefics3Config(
        vision_config=vision_config("idefics3_vision", num_channels=3),
        text_config=llama_config(),
        image_token_id=tok.convert_tokens_to_ids("<image>"),
        scale_factor=2,
    )
    t.Idefics3ForConditionalGeneration(config).save_pretrained(folder)
    images = t.Idefics3ImageProcessorPil(
        size={"longest_edge": IMAGE_SIDE}, max_image_size={"longest_edge": IMAGE_SIDE}, do_image_splitting=False
    )
    t.Idefics3Processor(images, tok, image_seq_len=4, chat_template=CHAT).save_pretrained(folder)


def qformer_config(model_type: str) -> dict[str, Any]:
    """The querying transformer between the halves of the BLIP family."""
    return {
        "model_type": model_type,
        "hidden_size": HIDDEN,
        "encoder_hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": VOCABULARY + 64,
    }


def blip_images() -> Any:
    """The picture half of a BLIP processor."""
    import transformers as t

    return t.BlipImageProcessorPil(size={"height": IMAGE_SIDE, "width": IMAGE_SIDE})


def write_blip2(folder: Path) -> None:
    """BLIP-2 with a decoder-only language half (OPT)."""
    import transformers as t

    tok = tokenizer()
    text = t.OPTConfig(
        vocab_size=VOCABULARY + 64,
        hidden_size=HIDDEN,
        ffn_dim=2 * HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=4,
        word_embed_proj_dim=HIDDEN,
        max_position_embeddings=512,
        init_std=0.3,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=4,
    )
    config = t.Blip2Config(
        vision_config=vision_config("blip_2_vision_model"),
        qformer_config=qformer_config("blip_2_qformer"),
        text_config=text.to_dict(),
        num_query_tokens=4,
        image_token_index=tok.convert_tokens_to_ids("<image>"),
    )
    t.Blip2ForConditionalGeneration(config).save_pretrained(folder)
    t.Blip2Processor(blip_images(), tokenizer(), num_query_tokens=4).save_pretrained(folder)


def write_instructblip(folder: Path) -> None:
    """InstructBLIP with an encoder-decoder language half (T5), the seed's strongest."""
    import transformers as t

    tok = tokenizer()
    config = t.InstructBlipConfig(
        vision_config=vision_config("instructblip_vision_model"),
        qformer_config=qformer_config("instructblip_qformer"),
        text_config=t5_config(),
        num_query_tokens=4,
        image_token_index=tok.convert_tokens_to_ids("<image>"),
    )
    t.InstructBlipForConditionalGeneration(config).save_pretrained(folder)
    t.InstructBlipProcessor(blip_images(), tokenizer(), tokenizer(), num_query_tokens=4).save_pretrained(folder)


def write_instructblip_llama(folder: Path) -> None:
    """InstructBLIP with a decoder-only language half: its processor pads between the picture and the words."""
    import transformers as t

    tok = tokenizer()
    config = t.InstructBlipConfig(
        vision_config=vision_config("instructblip_vision_model"),
        qformer_config=qformer_config("instructblip_qformer"),
        text_config=llama_config(),
        num_query_tokens=4,
        image_token_index=tok.convert_tokens_to_ids("<image>"),
    )
    t.InstructBlipForConditionalGeneration(config).save_pretrained(folder)
    t.InstructBlipProcessor(blip_images(), tok, tokenizer(), num_query_tokens=4).save_pretrained(folder)


def write_gemma3(folder: Path) -> None:
    """Gemma 3: image tokens see each other both ways, most layers have a sliding window."""
    import transformers as t

    tok = tokenizer(extra={"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image>"})
    text = llama_config(
        model_type="gemma3_text", head_dim=16, num_hidden_layers=3, sliding_window=24, sliding_window_pattern=3
    )
    config = t.Gemma3Config(
        vision_config=vision_config("siglip_vision_model", vision_use_head=False),
        text_config=text,
        mm_tokens_per_image=4,
        image_token_index=tok.image_token_id,
        boi_token_index=tok.convert_tokens_to_ids("<start_of_image>"),
        eoi_token_index=tok.convert_tokens_to_ids("<end_of_image>"),
    )
    t.Gemma3ForConditionalGeneration(config).save_pretrained(folder)
    images = t.Gemma3ImageProcessorPil(size={"height": IMAGE_SIDE, "width": IMAGE_SIDE}, do_pan_and_scan=False)
    t.Gemma3Processor(
        images, tok, chat_template=CHAT.replace("<image>", "<start_of_image>"), image_seq_length=4
    ).save_pretrained(folder)


def qwen_text() -> dict[str, Any]:
    """The language half of the Qwen-VL family: rotary positions in three dimensions."""
    half = HIDDEN // 8  # of a head
    sections = [half // 4, 3 * half // 8, 3 * half // 8]
    return llama_config(rope_parameters={"rope_type": "default", "mrope_section": sections, "rope_theta": 10000.0})


def qwen_tokens(tok: Any) -> dict[str, int]:
    """The special tokens of the Qwen-VL family."""
    names = {
        "image_token_id": "<image>",
        "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|vision_start|>",
        "vision_end_token_id": "<|vision_end|>",
    }
    return {key: tok.convert_tokens_to_ids(token) for key, token in names.items()}


def write_qwen_processor(folder: Path, patch: int) -> None:
    """The processor of the Qwen-VL family, where torchvision is there to make it."""
    import transformers as t

    from torchvision_shim import has_torchvision

    if not has_torchvision():
        return
    pixels = {"patch_size": patch, "min_pixels": 16 * patch**2, "max_pixels": 64 * patch**2}
    tok = tokenizer(extra={"image_token": "<image>", "video_token": "<|video_pad|>"})
    film = "{% elif part['type'] == 'video' %}<|vision_start|><|video_pad|><|vision_end|>"
    chat = CHAT.replace("<image>", f"<|vision_start|><image><|vision_end|>{film}")
    images, videos = t.Qwen2VLImageProcessorPil(**pixels), t.Qwen2VLVideoProcessor(**pixels)
    t.Qwen2VLProcessor(images, tok, videos, chat_template=chat).save_pretrained(folder)


def write_qwen2vl(folder: Path) -> None:
    """Qwen2-VL. Weights alone without torchvision: its processor needs it."""
    import transformers as t

    vision = {
        "model_type": "qwen2_vl",
        "depth": 2,
        "embed_dim": HIDDEN,
        "hidden_size": HIDDEN,
        "num_heads": 4,
        "mlp_ratio": 2,
        "patch_size": PATCH,
    }
    text = qwen_text() | {"model_type": "qwen2_vl_text"}
    config = t.Qwen2VLConfig(vision_config=vision, text_config=text, **qwen_tokens(tokenizer()))
    t.Qwen2VLForConditionalGeneration(config).save_pretrained(folder)
    write_qwen_processor(folder, PATCH)


def write_qwen25vl(folder: Path) -> None:
    """Qwen2.5-VL: windowed attention in its seeing half. Weights alone without torchvision."""
    import transformers as t

    vision = {
        "model_type": "qwen2_5_vl",
        "depth": 2,
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_heads": 4,
        "patch_size": PATCH,
        "window_size": 4 * PATCH,
        "fullatt_block_indexes": [1],
        "out_hidden_size": HIDDEN,
    }
    text = qwen_text() | {"model_type": "qwen2_5_vl_text"}
    config = t.Qwen2_5_VLConfig(vision_config=vision, text_config=text, **qwen_tokens(tokenizer()))
    t.Qwen2_5_VLForConditionalGeneration(config).save_pretrained(folder)
    write_qwen_processor(folder, PATCH)


def write_git(folder: Path) -> None:
    """GIT: the picture's positions stand in front of the tokens, without placeholders; prompts are closed by a token."""
    import transformers as t

    config = t.GitConfig(
        vision_config=vision_config("git_vision_model"),
        vocab_size=VOCABULARY + 64,
        hidden_size=HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=2 * HIDDEN,
        max_position_embeddings=512,
        initializer_range=0.3,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=4,
    )
    t.GitForCausalLM(config).save_pretrained(folder)
    side = {"height": IMAGE_SIDE, "width": IMAGE_SIDE}
    images = t.CLIPImageProcessorPil(size={"shortest_edge": IMAGE_SIDE}, crop_size=side)
    t.GitProcessor(images, tokenizer(bos=True, end="<|end|>")).save_pretrained(folder)


def write_paligemma(folder: Path) -> None:
    """PaliGemma: the prompt is read both ways, the answer forwards; positions count from one."""
    import transformers as t

    tok = tokenizer(extra={"image_token": "<image>"})
    text = llama_config(model_type="gemma", head_dim=16, vocab_size=VOCABULARY + 2048)
    config = t.PaliGemmaConfig(
        vision_config=vision_config("siglip_vision_model", vision_use_head=False, projection_dim=HIDDEN),
        text_config=text,
        image_token_index=tok.image_token_id,
        projection_dim=HIDDEN,
    )
    t.PaliGemmaForConditionalGeneration(config).save_pretrained(folder)
    images = t.SiglipImageProcessorPil(size={"height": IMAGE_SIDE, "width": IMAGE_SIDE})
    images.image_seq_length = (IMAGE_SIDE // PATCH) ** 2
    t.PaliGemmaProcessor(images, tok).save_pretrained(folder)


WRITERS: dict[str, Callable[[Path], None]] = {
    "text": write_text,
    "base": write_base,
    "sliding": write_sliding,
    "t5": write_t5,
    "llava": write_llava,
    "idefics3": write_idefics3,
    "blip2": write_blip2,
    "instructblip": write_instructblip,
    "gemma3": write_gemma3,
    "qwen2vl": write_qwen2vl,
    "qwen25vl": write_qwen25vl,
    "git": write_git,
    "paligemma": write_paligemma,
    "instructblip_llama": write_instructblip_llama,
}
NEEDS_TORCHVISION = ("qwen2vl", "qwen25vl")
VISION = ("llava", "idefics3", "blip2", "instructblip", "gemma3", "git", "paligemma", "instructblip_llama")
LOADABLE = tuple(kind for kind in WRITERS if kind not in NEEDS_TORCHVISION)
"""Those whose processor loads without torchvision."""


def write(kind: str, folder: Path) -> None:
    """Write one checkpoint with weights that are the same on every machine."""
    import torch

    torch.manual_seed(20 + list(WRITERS).index(kind))
    WRITERS[kind](folder)


def checkpoint(kind: str) -> Path:
    """Return the folder of one checkpoint, written on first use and kept across sessions."""
    import transformers

    from torchvision_shim import has_torchvision

    recipe = Path(__file__).read_bytes() + f"{transformers.__version__}{has_torchvision()}".encode()
    version = hashlib.sha256(recipe).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"snellen-tiny-{os.getuid()}-{version}" / kind
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=folder.parent))
        write(kind, draft)
        try:
            draft.rename(folder)
        except OSError:
            shutil.rmtree(draft)
    return folder


if __name__ == "__main__":
    for name in WRITERS:
        write(name, Path(sys.argv[1]) / name)
