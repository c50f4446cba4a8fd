"""run.yaml -> RunConfig, or every problem of the file at once with its place, what is allowed and the nearest name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from trainer.errors import Problem, Refused, nearest, one_of, refuse
from trainer.spec import FAMILIES, RunConfig, options, siblings
from trainer.yaml_text import Document, parse

# keys that people bring from elsewhere -> what to write; everything else is answered by the nearest name
SLIPS = {
    "max_seq_length": "TRL calls it max_length (renamed in 0.16, removed in 0.20)",
    "max_seq_len": "TRL calls it max_length",
    "cutoff_len": "TRL calls it max_length",
    "sequence_len": "TRL calls it max_length",
    "batch_size": "say per_device_train_batch_size, or effective_batch_size for the whole job",
    "micro_batch_size": "say per_device_train_batch_size",
    "per_gpu_train_batch_size": "say per_device_train_batch_size",
    "lr": "say learning_rate",
    "epochs": "say num_train_epochs",
    "num_epochs": "say num_train_epochs",
    "lr_scheduler": "say lr_scheduler_type",
    "warmup_ratio": "Transformers 5 has only warmup_steps: a value below 1 is the share of all steps",
    "evaluation_strategy": "say eval_steps; without it evaluation runs once an epoch",
    "eval_strategy": "say eval_steps; without it evaluation runs once an epoch",
    "save_strategy": "say save_steps",
    "resume_from_checkpoint": "resume is automatic, from the newest sealed checkpoint; --resume_from_checkpoint names another",
    "output_dir": "derived: DATAROOT/checkpoints/NAME; remove it",
    "logging_dir": "derived: DATAROOT/logs/training/NAME; remove it",
    "report_to": "Prometheus, TensorBoard and JSONL are always written; remove it",
    "model_name_or_path": "say model",
    "dataset_name": "say dataset",
    "lora_rank": "say method: {type: lora, r: 16}",
    "lora_r": "say method: {type: lora, r: 16}",
    "rank": "say method: {type: lora, r: 16}",
    "finetuning_type": "say method: lora or method: full",
    "peft": "say method: lora",
    "use_peft": "say method: lora",
    "lora_target": "say method: {type: lora, target_modules: [q_proj, v_proj]}",
    "deepspeed": "say engine: deepspeed-zero2 or engine: deepspeed-zero3",
    "fsdp": "say engine: fsdp",
    "fsdp_config": "say engine: {type: fsdp, cpu_offload: false, reshard_after_forward: true}",
    "stage": "say objective: sft or objective: dpo",
    "load_best_model_at_end": "the best checkpoint is kept and named in result.json; remove it",
}
PAIRS = (("gradient_accumulation_steps", "effective_batch_size"), ("num_train_epochs", "max_steps"), ("bf16", "fp16"))
_BOUNDS = {
    "greater_than": "greater than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
}
_KINDS = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "a boolean: write true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a word or a mapping",
}


def load(path: Path) -> tuple[RunConfig, Document]:
    """The run that a file describes. Raises Refused with every problem of it."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise refuse(str(path), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise refuse(str(path), f"is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}") from error
    document = parse(text, path.name)
    return validate(document), document


def validate(document: Document) -> RunConfig:
    """The run that a document describes; Refused has all problems, in the order of the file."""
    problems = list(_contradictions(document))
    config = None
    try:
        config = RunConfig.model_validate(document.data)
    except ValidationError as error:
        problems += [_problem(document, dict(found)) for found in error.errors(include_url=False)]
    if problems or config is None:
        raise Refused(sorted(set(problems), key=_place))
    return config


def _place(problem: Problem) -> tuple[int, int, str]:
    parts = problem.where.rsplit(":", 2)
    return int(parts[1]), int(parts[2]), problem.what


def _contradictions(document: Document) -> Iterator[Problem]:
    said = document.data
    for one, other in PAIRS:
        if said.get(one) not in (None, False) and said.get(other) not in (None, False):
            yield Problem(document.where((other,), key=True), f"{one} and {other} are both given: keep one")
    if said.get("validation_dataset") and said.get("validation_split") not in (None, "0", "0.0"):
        what = "validation_dataset and validation_split are both given: keep one (a split of 0 beside a dataset is fine)"
        yield Problem(document.where(("validation_split",), key=True), what)
    extra = said.get("extra")
    for key in extra if isinstance(extra, Mapping) else ():
        if key in RunConfig.model_fields:
            yield Problem(document.where(("extra", key), key=True), f"'{key}' is a field of the run file itself: say it there")


def _problem(document: Document, found: dict[str, Any]) -> Problem:
    kind, context = found["type"], found.get("ctx", {})
    path = _path(document.data, found["loc"])
    if kind == "extra_forbidden":
        return Problem(document.where(path, key=True), _unknown(path, _owner(found["loc"])))
    if kind == "missing":
        return Problem(document.where(path), f"'{found['loc'][-1]}' is missing")
    return Problem(
        document.where(path, key="[key]" in found["loc"]),
        f"{'.'.join(map(str, path))}: {_sentence(kind, found['input'], context, found['msg'])}",
    )


def _sentence(kind: str, value: Any, context: Mapping[str, Any], message: str) -> str:
    if kind == "literal_error":
        return one_of(str(value), _words(str(context["expected"])))
    if kind == "union_tag_invalid":
        return one_of(str(context["tag"]), _words(str(context["expected_tags"])))
    if kind == "union_tag_not_found":
        return "says no type: write it as a word, or as {type: ...}"
    if kind in _BOUNDS:
        return f"{value} is not {_BOUNDS[kind].format(**context)}"
    if kind == "bool_type" and value in ("true", "false"):
        return f"'{value}' stands in quotes, so it is text: write {value}"
    if kind in _KINDS:
        return f"{_shown(value)} is not {_KINDS[kind]}"
    return message.removeprefix("Value error, ")


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    return f"'{value}'" if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else repr(value)


def _words(expected: str) -> list[str]:
    return re.findall(r"'([^']+)'", expected)


def _path(data: Any, loc: Sequence[str | int]) -> tuple[str | int, ...]:
    """Pydantic's location without the tags that it puts between: what stands in the file. The last part may be missing there."""
    path: list[str | int] = []
    tags = {tag for family in FAMILIES for kind in family for tag in options(kind)}
    for part in loc:
        if part == "[key]":
            continue
        inside = isinstance(data, Mapping) and part in data
        if part in tags and not inside:
            continue
        path.append(part)
        data = data[part] if inside or (isinstance(data, list) and isinstance(part, int) and part < len(data)) else None
    return tuple(path)


def _owner(loc: Sequence[str | int]) -> type[BaseModel]:
    """The model that an unknown key was given to."""
    for family in FAMILIES:
        for kind in family:
            if len(loc) > 1 and loc[-2] in options(kind):
                return kind
    return RunConfig


def _unknown(path: Sequence[str | int], owner: type[BaseModel]) -> str:
    key = str(path[-1])
    for kind in siblings(owner):
        if key in kind.model_fields:
            return f"'{key}' is an option of {' or '.join(options(kind))}, not of {_tag(owner)}"
    if owner is RunConfig and (home := _home(key)):
        return f"unknown key '{key}'; {home}"
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).replace("-", "_").lower()
    advice = SLIPS.get(key) or SLIPS.get(snake)
    if advice and owner is RunConfig:
        return f"unknown key '{key}'; {advice}"
    allowed = list(owner.model_fields)
    hint = f"; did you mean '{snake}'?" if snake in allowed else nearest(key, allowed)
    rest = "; other fields of the trainer's config go under extra" if owner is RunConfig else f"; allowed: {', '.join(allowed)}"
    return f"unknown key '{key}'{hint or rest}"


def _tag(owner: type[BaseModel]) -> str:
    return " or ".join(options(owner))


def _home(key: str) -> str:
    """Where an option of a member of a union belongs, when it was written on top."""
    for name, family in zip(("objective", "method", "engine"), FAMILIES, strict=True):
        for kind in family:
            if key in kind.model_fields and key != "type":
                return f"it is an option: write {name}: {{type: {options(kind)[0]}, {key}: ...}}"
    return ""
