"""Sources of base models: a folder of this host, the Hugging Face hub (`hub:OWNER/NAME[@REVISION]`), or an S3 bucket
(`s3://BUCKET/PREFIX[@HASH]`)."""

from temper_gpu.contract import HUB_PREFIX
from temper_gpu.model.bucket import download_s3, parse_s3_model
from temper_gpu.model.hub import FILES, OnProgress, Snapshot, download, parse_hub_model, unreported


def fetch(source: str, report: OnProgress = unreported, files: list[str] = FILES) -> Snapshot | None:
    """A model that comes from elsewhere; None for a folder. Raises as `download` does."""
    in_bucket = parse_s3_model(source)
    if in_bucket is not None:
        return download_s3(in_bucket, report, files)
    return download(parse_hub_model(source), report, files) if source.startswith(HUB_PREFIX) else None
