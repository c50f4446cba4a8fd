"""Rows as tokens: TRL makes them, once for each content; `data.cache` keeps them; a later start reads them back."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from trainer import durable
from trainer.data import cache
from trainer.errors import Problem, StorageFailed
from trainer.together import Together

# What `_prepare_dataset` of TRL's trainers reads of its arguments and of the trainer; pinned by a test.
ARGUMENTS = (
    "assistant_only_loss",
    "dataset_text_field",
    "max_length",
    "packing_strategy",
    "seed",
    "shuffle_dataset",
    "truncation_mode",
)
ATTRIBUTES = ("completion_only_loss",)
MAKERS = ("trl", "transformers", "tokenizers", "datasets")
log = logging.getLogger("trainer")


@dataclass(frozen=True, slots=True)
class Tokenised:
    """The kept tokens below `root`. `data`: digest of the rows and of how they were split."""

    root: Path
    data: str
    together: Together

    def of(self, trainer: Any, given: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """The Dataset of one side, where it is not kept yet as `make` gives it, which every rank calls.

        `given`: tokenizer, arguments, what else the trainer's own method is told (JSON values), and the side ("train", "eval").
        Raises CacheDamaged and StorageFailed, alike on all ranks.
        """
        from datasets import load_from_disk

        key, side = self._key(trainer, *given), given[-1]
        if not all(self.together.each_node(lambda: cache.found(self.root, key))):
            made = make()
            self.together.each_node(lambda: self._keep(key, made))
        log.info("tokens of %s are kept in %s", side, self.root / key.name)
        return load_from_disk(str(self.root / key.name))

    def _keep(self, key: cache.Key, made: Any) -> Path:
        try:
            return cache.kept(self.root, key, lambda folder: made.save_to_disk(str(folder)))
        except OSError as error:
            raise StorageFailed(Problem(str(self.root), f"tokens cannot be kept: {error.strerror or error}")) from error

    def _key(self, trainer: Any, tokenizer: Any, args: Any, *told: Any) -> cache.Key:
        settings = {name: getattr(args, name, None) for name in ARGUMENTS}
        settings |= {name: getattr(trainer, name, None) for name in ATTRIBUTES}
        template = getattr(trainer, "chat_template", None) or tokenizer.chat_template
        return cache.Key(
            self.data,
            cache.tokenizer_digest(tokenizer),
            durable.digest_of(template),
            {**settings, "trainer": type(trainer).__name__, "told": list(told)},
            {name: version(name) for name in MAKERS},
        )
