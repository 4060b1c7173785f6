"""Which folder of temper_gpu may import from which: types and lazy imports included, and without a cycle."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import temper_gpu

PACKAGE = Path(temper_gpu.__file__).parent

# What every folder may import. They import nothing of the package.
COMMON = {"contract", "failures"}
# Besides those and itself: this is the picture of the structure.
MAY_IMPORT: dict[str, set[str]] = {
    "contract": set(),
    "failures": set(),
    "store": set(),
    "model": {"store"},
    "engine": {"model"},
    "engine/embedded": {"engine", "model"},
    "engine/vllm": {"engine", "model"},
    "commits": {"engine", "model", "store"},
    "training": {"commits", "model", "store", "training/losses", "training/packing", "training/ranks"},
    "training/group": {"model", "store", "training", "training/ranks"},
    "training/losses": {"training/packing"},
    "training/packing": set(),
    "training/ranks": set(),
    "server": {"commits", "engine", "model"},
    "temporal": {"commits", "model", "store", "training", "training/ranks"},
    "process": {
        "commits",
        "engine",
        "engine/embedded",
        "engine/vllm",
        "model",
        "server",
        "store",
        "temporal",
        "training",
        "training/group",
        "training/ranks",
    },
    "__main__": {"process", "store"},
}
# Engine and trainer are a library, which runs without Temporal.
MAY_IMPORT_TEMPORALIO = {"temporal"}


def test_the_top_level_holds_what_every_folder_may_import_and_the_program():
    assert {file.stem for file in PACKAGE.glob("*.py")} == COMMON | {"__init__", "__main__"}


def test_folders_import_in_the_allowed_directions_alone():
    found: dict[str, set[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        place = place_of(file)
        found.setdefault(place, set()).update({place_of(target) for target in imported(file)} - COMMON - {place})
    assert found.pop("__init__") == set()
    assert {place: imports - MAY_IMPORT[place] for place, imports in found.items()} == {place: set() for place in found}


def test_the_allowed_directions_have_no_cycle():
    assert list(TopologicalSorter(MAY_IMPORT).static_order())[-1] == "__main__"


def test_no_files_import_each_other():
    TopologicalSorter({file: set(imported(file)) - {file} for file in PACKAGE.rglob("*.py")}).prepare()


def test_only_the_folder_of_temporal_imports_its_client():
    found = {
        place_of(file) for file in PACKAGE.rglob("*.py") if "temporalio" in {name.split(".")[0] for name in names(file)}
    }
    assert found <= MAY_IMPORT_TEMPORALIO


def test_models_are_made_in_one_file_which_names_their_type():
    """transformers sets PyTorch's default type meanwhile, for all threads. Its other readers set nothing."""
    harmless = {"AutoConfig", "AutoTokenizer", "GenerationConfig"}
    found = [
        (file.name, call)
        for file, owner, name, call in calls()
        if name in {"from_config", "_from_config", "from_pretrained", "set_default_dtype"} and owner not in harmless
    ]
    assert {name for name, _ in found} == {"stock_models.py"}
    assert all(names_its_type(call) for _, call in found)


def test_new_tensors_of_floats_name_their_type():
    """The default is another one while weights of a smaller type are read. `torch.tensor` is for integers, else too."""
    makers = {"empty", "eye", "full", "linspace", "ones", "rand", "randn", "zeros"}
    found = [
        (file, call.lineno)
        for file, owner, name, call in calls()
        if owner == "torch" and name in makers and not names_its_type(call)
    ]
    assert found == []


def names_its_type(call: ast.Call) -> bool:
    return any(keyword.arg == "dtype" for keyword in call.keywords)


def calls() -> Iterator[tuple[Path, str, str, ast.Call]]:
    """Calls of a name's attribute."""
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value
                yield file, owner.id if isinstance(owner, ast.Name) else "", node.func.attr, node


def place_of(file: Path) -> str:
    """The folder, or the file's own name at the top level."""
    place = file.relative_to(PACKAGE).parent.as_posix()
    return file.stem if place == "." else place


def imported(file: Path) -> Iterator[Path]:
    """What a file imports of this package."""
    for name in names(file):
        first, *rest = name.split(".")
        if first == PACKAGE.name and rest:
            target = PACKAGE.joinpath(*rest)
            if target.is_dir():
                yield target / "__init__.py"
            elif target.with_suffix(".py").exists():
                yield target.with_suffix(".py")


def names(file: Path) -> Iterator[str]:
    """Of modules; `from a import b` gives `a` and `a.b`, which may be a module or not."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
