"""Aliases: ours, the user's, and names that are none."""

from __future__ import annotations

import re

import pytest

from genprobe.errors import InputError
from genprobe.resources import models, packs

# The models that the studies say they ran: SHADES Table 12 and appendix I, Aqbileq 4.1 and 4.1.3,
# RuBia 4.2, AfriStereo 5 (the list of eleven), PBBQ Table 3. Not here: GPT-4o, which is not on the
# hub, and Dorna-legacy, of which the paper gives no id and none could be found.
STUDIED = """
Meta-Llama-3-8B-Instruct Mistral-7B-Instruct-v0.1 Qwen2-7B-Instruct aya-101 bloomz-7b1 Qwen2-1.5B
Qwen2-72B-Instruct bloom-1b7 LLama-3.1-KazLLM-1.0-70B
Qwen2-7B Qwen2-72B Meta-Llama-3-8B Meta-Llama-3-70B Mistral-7B-v0.1 bloom-7b1 xlm-roberta-base
xlm-roberta-large kaz-roberta-conversational Llama-3.1-8B Llama-3.1-8B-Instruct Qwen2.5-7B
Qwen2.5-7B-Instruct Llama-3.1-Sherkala-8B-Chat LLama-3.1-KazLLM-1.0-8B rembert ruBert-base
ruBert-large ruRoberta-large rubert-base-cased-conversational gpt2-medium gpt2-large gpt-neo-1.3B
flan-t5-large BioGPT-Large finbert Phi-3-mini-4k-instruct Llama-3.2-3B gemma-2-2b
Dorna-Llama3-8B-Instruct Maral-7B-alpha-1 Qwen3-14B Mistral-7B-Instruct-v0.3
"""


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("GENPROBE_MODELS", raising=False)
    (tmp_path / "genprobe").mkdir()
    return tmp_path / "genprobe" / "models.toml"


def test_every_model_of_the_studies_is_there():
    assert set(STUDIED.split()) <= {m.id.split("/")[1] for m in models.catalogue().values()}


def test_every_entry_says_what_it_is():
    ids = [m.id for m in models.catalogue().values()]
    assert len(ids) == len(set(ids)) + 1  # dorna-legacy, of which the paper gives no id
    for alias, model in models.catalogue().items():
        assert alias == model.alias == alias.lower() and re.fullmatch(r"[\w.-]+", alias)
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", model.id)
        assert model.kind in models.KINDS and model.architecture in models.ARCHITECTURES
        assert model.licence and model.studies
        for language in model.languages:
            assert language == "multilingual" or packs.language_code(language) == language
    assert len(models.listed()) == len(ids)


def test_names_are_found(tmp_path):
    assert models.resolve("Sherkala").id == "inceptionai/Llama-3.1-Sherkala-8B-Chat"
    assert models.resolve("google/rembert").kind == "masked"
    assert models.resolve("some/model") == models.Model("", "some/model")
    assert models.resolve(str(tmp_path)).id == str(tmp_path)
    with pytest.raises(
        InputError, match=r"unknown model 'sherkalla'; did you mean 'sherkala'.*needs --base-url"
    ):
        models.resolve("sherkalla")
    for name in ("./none", "/none/there", "a/b/c", "~nobody-of-this-name/there"):
        with pytest.raises(InputError, match="no such folder"):
            models.resolve(name)
    with pytest.raises(InputError, match="recorded replies need --engine replay"):
        models.resolve(__file__)
    with pytest.raises(InputError, match=r"unknown model ''"):
        models.resolve("")


def test_the_users_file_wins(own, monkeypatch, tmp_path):
    (own.parent / "weights").mkdir()
    own.write_text(
        '[sherkala]\nid = "me/mine"\nengine = "vllm"\nengine_args = { max_model_len = 512 }\n'
        '[local]\nid = "weights"\ndtype = "float32"\n[home]\nid = "~nobody-of-this-name"\n[served]\nid = "x"\nbase_url = "http://h/v1"\n'
    )
    mine = models.resolve("sherkala")
    assert (mine.id, mine.engine, mine.engine_args) == ("me/mine", "vllm", {"max_model_len": 512})
    assert models.resolve("local").id == str(own.parent / "weights")
    assert models.resolve("kazllm-8b").kind == "instruct"
    monkeypatch.setenv("GENPROBE_MODELS", str(tmp_path / "other.toml"))
    with pytest.raises(InputError, match="which does not exist"):
        models.catalogue()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[a]\nkind = "instruct"', "lacks 'id'"),
        ('[a]\nid = "x/y"\nkinds = 1', "unknown key 'kinds'"),
        ('[a]\nid = "x/y"\nkind = "chat"', "kind must be one of instruct"),
        ('[a]\nid = "x/y"\ngated = "no"', "'gated' must be true or false"),
        ('[a]\nid = "x/y"\nlanguages = "kk"', "'languages' must be a list of texts"),
        ('[a]\nid = "x/y"\nengine_args = 1', "'engine_args' must be a table"),
        ('[a]\nid = "x/y"\napi_key = "sk-1"', "keys belong in the environment"),
        ('[a]\nid = "x/y"\nhf_token = "sk-1"', "keys belong in the environment"),
        ('[a]\nid = "x/y"\nAPI-KEY = "sk-1"', "keys belong in the environment"),
        ('[a]\nid = "x/y"\nengine_args = {token = "sk-1"}', "keys belong in the environment"),
        ('[a]\nid = "x/y"\nbase_url = "http://me:sk-1@h/v1"', "keys belong in the environment"),
        ('[a]\nid = "x/y"\nengine = "vlm"', "unknown engine 'vlm'; did you mean 'vllm'?"),
        ('[a]\nid = "x/y"\nlanguages = ["kz"]', "unknown language 'kz'"),
        ('[a]\nid = "x/y"\nengine_args = {x = 2020-01-01}', "cannot be passed on"),
        ('[a]\nid = "x/y"\n[A]\nid = "x/z"', "is given twice"),
        ('[a.5]\nid = "x/y"', 'in quotes: ["a.5"]'),
        ('a = "x/y"', "must be a table"),
        ("[a", "not TOML"),
    ],
)
def test_faults_are_one_line(own, text, says):
    own.write_text(text)
    with pytest.raises(InputError, match=re.escape(says)) as error:
        models.resolve("a")
    assert "\n" not in str(error.value) and "sk-1" not in str(error.value)


def test_the_users_alias_of_a_known_model_keeps_its_facts(own):
    own.write_text('[mine]\nid = "FacebookAI/xlm-roberta-base"\nlanguages = ["kk"]\n')
    mine = models.resolve("mine")
    assert (mine.kind, mine.architecture, mine.languages) == ("masked", "masked", ("kk",))
