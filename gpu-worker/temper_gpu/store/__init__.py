"""The store, as TypeScript's store/ has it: write-once objects by key relative to a root, blobs by hash."""

from temper_gpu.store.file_store import FileStore, FileSystem
from temper_gpu.store.open_store import open_store
from temper_gpu.store.store import Published, Store, blob_ref
from temper_gpu.store.store_id import store_id

__all__ = ["FileStore", "FileSystem", "Published", "Store", "blob_ref", "open_store", "store_id"]
