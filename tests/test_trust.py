"""A model is data: nothing in its folder is run, whoever loads it; each call that loads says so."""

from __future__ import annotations

import ast
import importlib
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from genprobe.commands import cli
from genprobe.engines import Options
from genprobe.errors import EngineError, GenprobeError, InputError

ROOT = Path(__file__).parents[1] / "genprobe"

# Calls that load a model or a table from the hub, and what each must say.
LOADS = {
    "from_pretrained": ("trust_remote_code", False),
    "SentenceTransformer": ("trust_remote_code", False),
    "CrossEncoder": ("trust_remote_code", False),
    "LLM": ("trust_remote_code", False),
    "load_dataset": ("trust_remote_code", False),
    "pipeline": ("trust_remote_code", False),
    "torch.load": ("weights_only", True),
    "np.load": ("allow_pickle", False),
    "numpy.load": ("allow_pickle", False),
    "snapshot_download": ("revision", ...),
    "hf_hub_download": ("revision", ...),
}
# Calls that need not say it: where, and why.
READ = {
    ("engines/_local.py", "GenerationConfig.from_pretrained"): "JSON alone",
    ("curation/group.py", "StaticModel.from_pretrained"): "safetensors and JSON alone",
    ("curation/group.py", "snapshot_download"): "of the user's --model; no weights but safetensors",
}
PICKLES = {"pickle", "joblib", "dill", "cloudpickle", "shelve", "marshal", "skops"}
RUNS = {"eval", "exec", "compile", "os.system", "pd.read_pickle", "pandas.read_pickle"}


def loads(tree: ast.AST):
    """Calls that load, by their two last names, with the keywords that each gives."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        # functools.partial(f, …) calls f.
        called = [node.func, *node.args[:1]] if _name(node.func)[-7:] == "partial" else [node.func]
        for name in map(_name, called):
            key = next((k for k in (name, name.rpartition(".")[2]) if k in LOADS), "")
            if key:
                given = {k.arg: getattr(k.value, "value", ...) for k in node.keywords if k.arg}
                yield key, name, node.lineno, given


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value).rpartition('.')[2]}.{node.attr}"
    return getattr(node, "id", "")


def unsafe(source: str, where: str = "x.py"):
    tree = ast.parse(source)
    for key, name, line, given in loads(tree):
        word, value = LOADS[key]
        if (where, name) in READ:
            continue
        if word not in given or (value is not ... and given[word] is not value):
            yield f"{where}:{line}: {name} without {word}={value}"
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            if name.partition(".")[0] in PICKLES:
                yield f"{where}:{node.lineno}: {name} runs what it reads"
        if isinstance(node, ast.Call):
            name = _name(node.func)
            if name in RUNS:
                yield f"{where}:{node.lineno}: {name}"
            if any(k.arg == "shell" for k in node.keywords):
                yield f"{where}:{node.lineno}: {name} with a shell"


def test_every_call_that_loads_a_model_is_safe():
    found, seen = [], set()
    for path in sorted(ROOT.rglob("*.py")):
        where, source = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
        found += unsafe(source, where)
        seen |= {(where, name) for _, name, _, _ in loads(ast.parse(source))}
    assert found == []
    assert seen >= set(READ), "an exception that nothing needs"
    assert len(seen) >= 15, seen


@pytest.mark.parametrize(
    "source",
    [
        "AutoModel.from_pretrained(folder)",
        "AutoModel.from_pretrained(folder, trust_remote_code=True)",
        "AutoModel.from_pretrained(folder, trust_remote_code=trust)",
        "getattr(transformers, name).from_pretrained(folder)",
        "SentenceTransformer(folder)",
        "vllm.LLM(model=folder, **more)",
        "torch.load(path)",
        "snapshot_download(model)",
        "functools.partial(hub.hf_hub_download, 'x', 'y')",
        "import joblib",
        "from pickle import loads",
        "eval(text)",
        "pd.read_pickle(path)",
        "subprocess.run(line, shell=True)",
    ],
)
def test_a_call_that_is_not_safe_is_found(source):
    assert list(unsafe(source))


# --- a folder that would run code ---------------------------------------------------------------


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> dict[str, Path]:
    """A tiny encoder, classifier and causal model, whose folders are harmless."""
    import torch
    import transformers as t

    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]
    top = tmp_path_factory.mktemp("good")
    (top / "vocab.txt").write_text("\n".join(words))
    sizes = {"vocab_size": len(words), "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"hidden_size": 16, "intermediate_size": 16, "max_position_embeddings": 64}
    labels = {"id2label": {0: "bad", 1: "fine"}, "label2id": {"bad": 0, "fine": 1}}
    ids = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    made = {
        "encoder": t.BertForMaskedLM(t.BertConfig(**sizes)),
        "classifier": t.BertForSequenceClassification(t.BertConfig(**sizes, **labels)),
        "causal": t.LlamaForCausalLM(t.LlamaConfig(**sizes, num_key_value_heads=1, **ids)),
    }
    for kind, net in made.items():
        net.save_pretrained(top / kind)
        t.BertTokenizerFast(str(top / "vocab.txt")).save_pretrained(top / kind)
    return {kind: top / kind for kind in made}


def trap(folder: Path, ran: Path, unknown: bool) -> None:
    """Name code of its own wherever a loader looks for it; `unknown`: and nothing else."""
    code = f"open({str(ran)!r}, 'a').write(__name__)\n"
    kinds = ["Config", "Model", "ModelForCausalLM", "ModelForMaskedLM"]
    kinds += ["ModelForSequenceClassification", "ModelForSeq2SeqLM", "Tokenizer"]
    (folder / "evil.py").write_text(code + "".join(f"class {kind}: pass\n" for kind in kinds))
    (folder / "custom_generate").mkdir()
    (folder / "custom_generate" / "generate.py").write_text(code + "def generate(**_): pass\n")
    own = {f"Auto{kind}": f"evil.{kind}" for kind in kinds if kind != "Tokenizer"}
    config = json.loads((folder / "config.json").read_text()) | {"auto_map": own}
    tokens = json.loads((folder / "tokenizer_config.json").read_text())
    tokens["auto_map"] = {"AutoTokenizer": ["evil.Tokenizer", "evil.Tokenizer"]}
    if unknown:
        config["model_type"] = "evil"
        tokens["tokenizer_class"] = "Tokenizer"
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokens))


def texts(folder: Path) -> Path:
    path = folder.parent / "texts.csv"
    path.write_text("id,lang,text\n1,en,a b c\n2,en,a b d\n3,en,e f\n")
    return path


def command(*arguments: object) -> None:
    result = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    if result.exit_code:
        raise InputError(result.output)


def group(folder: Path) -> None:
    out = folder.parent / "out.csv"
    command("dataset", "group", texts(folder), "--model", folder, "-o", out)


def diversity(folder: Path) -> None:
    command("dataset", "diversity", texts(folder), "--model", folder)


CARD = """
title = "t"
engine = "transformers"
model = "{}"
languages = ["en"]
default_for = []
licence = "l"
source = "s"
trained_on = "t"
stories = "s"
measured = "not measured"
[labels]
bad = "negative"
fine = "positive"
"""


def classifier(folder: Path) -> None:
    from genprobe.judges.classifiers import models

    card = folder.parent / "card.toml"
    card.write_text(CARD.format(folder.name))
    models.open(str(card)).predict(["a b"], "en")


def engine(name: str, maker: str = "open"):
    def load(folder: Path) -> None:
        module = importlib.import_module(f"genprobe.engines.{name}")
        getattr(module, maker)(str(folder), Options(device="cpu"))

    return load


def vllm(folder: Path) -> None:
    pytest.importorskip("vllm")
    engine("vllm")(folder)


def served(folder: Path) -> None:
    from genprobe.engines.openai import _own

    _own(str(folder))


def tokenizer(folder: Path) -> None:
    from genprobe.engines.transformers import tokenizer_of

    if tokenizer_of(str(folder)) is None:
        raise EngineError("no tokenizer")


LOADERS = {
    "group": ("encoder", group),
    "diversity": ("encoder", diversity),
    "classifier": ("classifier", classifier),
    "transformers": ("causal", engine("transformers")),
    "scores": ("causal", engine("transformers", "open_scorer")),
    "masked scores": ("encoder", engine("transformers", "open_scorer")),
    "vllm": ("causal", vllm),
    "a server's tokenizer": ("causal", served),
    "a tokenizer": ("causal", tokenizer),
}


@pytest.fixture
def consent(tmp_path, monkeypatch):
    """Somebody who answers y to every question, and a cache of modules that is thrown away."""
    utils = importlib.import_module("transformers.dynamic_module_utils")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    monkeypatch.setattr(utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))


@pytest.mark.parametrize("unknown", [False, True], ids=["known kind", "own kind"])
@pytest.mark.parametrize("name", LOADERS)
def test_code_in_a_models_folder_is_not_run(name, unknown, good, tmp_path, consent):
    kind, load = LOADERS[name]
    folder, ran = tmp_path / "net", tmp_path / "ran"
    shutil.copytree(good[kind], folder)
    trap(folder, ran, unknown)
    try:
        load(folder)
    except GenprobeError:
        assert unknown, "the model itself can be used"
    assert not ran.exists(), ran.read_text()


def test_the_trap_would_close(good, tmp_path, consent):
    import transformers

    folder, ran = tmp_path / "net", tmp_path / "ran"
    shutil.copytree(good["encoder"], folder)
    trap(folder, ran, unknown=True)
    with pytest.raises(Exception, match=r"."):
        transformers.AutoModel.from_pretrained(folder)  # and `consent` says y
    assert ran.exists()


def test_modules_of_its_own_are_refused(good, tmp_path, consent):
    """sentence-transformers before version 6 imports any class that a local folder names."""
    from genprobe.curation.group import _embedded

    folder, ran = tmp_path / "net", tmp_path / "ran"
    shutil.copytree(good["encoder"], folder)
    trap(folder, ran, unknown=False)
    modules = [{"idx": 0, "name": "0", "path": "", "type": "evil.Model"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(InputError, match=r"names code of its own: evil\.Model"):
        _embedded(str(folder), ["a b"])
    assert not ran.exists()


def test_nobody_turns_it_on(good):
    pytest.importorskip("vllm")
    from genprobe.engines import vllm as module

    with pytest.raises(EngineError, match="trust_remote_code"):
        module.open(str(good["causal"]), Options(more={"trust_remote_code": True}))
