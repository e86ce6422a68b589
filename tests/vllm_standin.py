"""A stand-in for vLLM's offline engine: the library's names, shapes and bounds, and toy tokens of known value."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import PIL.Image

ids: dict[str, int] = {}


def token(word):
    return ids.setdefault(word, len(ids))


LLM_ARGUMENTS = {
    "task", "tokenizer", "tokenizer_mode", "skip_tokenizer_init", "trust_remote_code", "allowed_local_media_path",
    "tensor_parallel_size", "dtype", "quantization", "revision", "tokenizer_revision", "seed", "gpu_memory_utilization",
    "swap_space", "cpu_offload_gb", "enforce_eager", "max_seq_len_to_capture", "disable_custom_all_reduce", "hf_token",
    "hf_overrides", "mm_processor_kwargs", "compilation_config", "max_model_len", "limit_mm_per_prompt", "max_num_seqs",
    "enable_lora", "max_lora_rank", "max_loras",
}  # fmt: skip
"""What `vllm.LLM` takes by keyword: its own arguments, and those of its engine that users give most."""
DTYPES = {"auto", "half", "float16", "bfloat16", "float", "float32"}
CHAT_ARGUMENTS = {
    "use_tqdm", "lora_request", "chat_template", "chat_template_content_format", "add_generation_prompt",
    "continue_final_message", "tools", "chat_template_kwargs", "mm_processor_kwargs",
}  # fmt: skip
PARTS = {"text": str, "image_pil": PIL.Image.Image}
"""The parts of a message that we send, by their type and the type of what they carry."""


def check_messages(messages):
    """Refuse a conversation as vLLM's chat parser would: roles, and parts that carry what their type says."""
    for message in messages:
        assert set(message) == {"role", "content"} and message["role"] in ("system", "user", "assistant")
        if isinstance(message["content"], str):
            continue
        for part in message["content"]:
            assert set(part) == {"type", part["type"]}
            assert isinstance(part[part["type"]], PARTS[part["type"]])


class LLM:
    """Words are tokens; a word's log-probability is minus its length; a picture is the token <image>.

    It takes what the library takes, by the library's names and bounds, and nothing else.
    """

    made: ClassVar[list[LLM]] = []
    generation_config: ClassVar[dict[str, Any]] = {}
    context: ClassVar[int] = 20

    def __init__(self, model, **arguments):
        assert isinstance(model, str)
        assert set(arguments) <= LLM_ARGUMENTS | {"enforce_eagr"}, set(arguments) - LLM_ARGUMENTS
        assert arguments.get("dtype", "auto") in DTYPES
        assert arguments.get("tensor_parallel_size", 1) >= 1
        assert arguments.get("max_lora_rank", 16) in (8, 16, 32, 64, 128, 256, 320, 512)
        arguments["model"] = model
        if arguments["model"] == "broken":
            raise ValueError("no such checkpoint\nmore")
        if "enforce_eagr" in arguments:
            raise TypeError("EngineArgs.__init__() got an unexpected keyword argument 'enforce_eagr'")
        self.arguments, self.calls, self.adapters = arguments, [], []
        config = SimpleNamespace(try_get_generation_config=lambda: LLM.generation_config)
        self.ended = False
        self.llm_engine = SimpleNamespace(model_config=config, engine_core=SimpleNamespace(shutdown=self._end))
        LLM.made.append(self)

    def _end(self):
        self.ended = True

    def chat(self, messages, sampling_params=None, **arguments):
        assert set(arguments) <= CHAT_ARGUMENTS, set(arguments) - CHAT_ARGUMENTS
        assert arguments["use_tqdm"] is False, "no bar of its own in our terminal"
        continue_final_message = arguments.get("continue_final_message", False)
        if continue_final_message and arguments.get("add_generation_prompt", True):
            raise ValueError("continue_final_message and add_generation_prompt are not compatible")
        for conversation in messages:
            check_messages(conversation)
            assert not continue_final_message or conversation[-1]["role"] == "assistant", "nothing to continue"
        lora = arguments.get("lora_request")
        if lora is not None and not self.arguments.get("enable_lora"):
            raise ValueError(f"Got lora_request {lora} but LoRA is not enabled!")
        self.calls.append(len(messages))
        self.adapters.append(lora and lora.lora_path)
        return [
            self._one(each, params, continue_final_message)
            for each, params in zip(messages, sampling_params, strict=True)
        ]

    def _one(self, messages, params, continued):
        words = ["<s>"]
        for message in messages:
            parts = (
                message["content"]
                if isinstance(message["content"], list)
                else [{"type": "text", "text": message["content"]}]
            )
            for part in parts:
                words += ["<image>"] if part["type"] == "image_pil" and part["image_pil"].size else part["text"].split()
            words += [f"<{message['role']}>"] if message["role"] != "assistant" else []
        if len(words) > self.context:
            raise ValueError("The decoder prompt (length 21) is longer than the maximum model length of 20.")
        numbers = [token(word) for word in words]
        logprobs = [None, *({token(word): SimpleNamespace(logprob=-float(len(word)))} for word in words[1:])]
        answer = f"{params.given.get('temperature')} {params.given['max_tokens']} {params.given.get('seed', 0) > 0}"
        made = SimpleNamespace(text=answer, token_ids=[1, 2], finish_reason="stop")
        return SimpleNamespace(
            outputs=[made],
            prompt_token_ids=numbers,
            prompt_logprobs=logprobs if params.given.get("prompt_logprobs") == 0 else None,
        )


class SamplingParams:
    """The library's sampling parameters: its names, its types and its bounds; what it does not know it refuses."""

    FIELDS: ClassVar[dict[str, type | tuple[type, ...]]] = {
        "n": int, "presence_penalty": float, "frequency_penalty": float, "repetition_penalty": float,
        "temperature": (int, float), "top_p": (int, float), "top_k": int, "min_p": float, "seed": int, "stop": (str, list),
        "stop_token_ids": list, "ignore_eos": bool, "max_tokens": int, "min_tokens": int, "logprobs": int,
        "prompt_logprobs": int, "detokenize": bool, "skip_special_tokens": bool,
    }  # fmt: skip

    def __init__(self, **given):
        for name, value in given.items():
            if name not in self.FIELDS:
                raise TypeError(f"Unexpected keyword argument '{name}'")
            assert isinstance(value, self.FIELDS[name]), (name, value)
        assert given.get("temperature", 1.0) >= 0.0
        assert 0.0 < given.get("top_p", 1.0) <= 1.0
        assert given.get("max_tokens", 16) >= 1
        assert given.get("prompt_logprobs", 0) >= -1
        assert 0 <= given.get("seed", 0) < 2**63, "the generator takes 63 bits"
        assert all(given.get("stop") or ["x"]), "a stop text is not empty"
        self.given = given


class LoRARequest:
    """The library's name of an adapter: a number above zero and a folder."""

    def __init__(self, lora_name, lora_int_id, lora_path=""):
        assert lora_name and lora_path and lora_int_id >= 1
        self.lora_name, self.lora_int_id, self.lora_path = lora_name, lora_int_id, lora_path


def make_lora_module() -> ModuleType:
    """Return what `import vllm.lora.request` is to find."""
    module = ModuleType("vllm.lora.request")
    module.LoRARequest = LoRARequest
    return module


def make_module() -> ModuleType:
    """Return what `import vllm` is to find."""
    module = ModuleType("vllm")
    module.LLM, module.SamplingParams = LLM, SamplingParams
    LLM.made.clear()
    return module
