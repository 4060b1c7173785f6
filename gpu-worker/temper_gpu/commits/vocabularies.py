"""The vocabulary of a run's base model, in the store: what reads recorded token ids elsewhere needs no model for it.

For display. Nothing of it is part of a hash, and no run fails for want of it.
"""

import logging
from typing import TYPE_CHECKING

from temper_gpu.commits.checkpoints import canonical_json
from temper_gpu.contract import RECORD_SCHEMA, STORE_KEYS
from temper_gpu.model.vocabulary import vocabulary_bytes
from temper_gpu.store import Store

if TYPE_CHECKING:
    from temper_gpu.model.models import BaseModel

log = logging.getLogger(__name__)


def publish_vocabulary(store: Store, run: str, base: "BaseModel") -> None:
    """Once for a run; its bytes are a blob, which the runs of a base model share."""
    key = STORE_KEYS["vocabulary"].format(run=run)
    if base.tokenizer is None or store.read(key) is not None:
        return
    try:
        pieces = vocabulary_bytes(base.tokenizer)
    # Tokenizers of all kinds raise errors of all kinds.
    except Exception as error:
        log.warning("the vocabulary is not stored", extra={"model": base.name, "reason": repr(error)})
        return
    named = {"schema": RECORD_SCHEMA, "pieces": store.put_blob(pieces).model_dump(by_alias=True)}
    store.publish(key, canonical_json(named))
