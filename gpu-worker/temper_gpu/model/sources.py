"""Sources of base models: a folder of this host, the Hugging Face hub (`hub:OWNER/NAME[@REVISION]`), or an S3 bucket
(`s3://BUCKET/PREFIX[@HASH]`)."""

from temper_gpu.contract import HUB_PREFIX
from temper_gpu.model.bucket import download_s3, download_s3_description, parse_s3_model
from temper_gpu.model.hub import OnProgress, Snapshot, download, download_description, parse_hub_model


def fetch(source: str, report: OnProgress) -> Snapshot | None:
    """All files of a model that comes from elsewhere; None for a folder. Raises as `download` does."""
    in_bucket = parse_s3_model(source)
    if in_bucket is not None:
        return download_s3(in_bucket, report)
    return download(parse_hub_model(source), report) if source.startswith(HUB_PREFIX) else None


def fetch_description(source: str) -> Snapshot | None:
    """Config and tokenizer alone; None for a folder. Raises as `download` does."""
    in_bucket = parse_s3_model(source)
    if in_bucket is not None:
        return download_s3_description(in_bucket)
    return download_description(parse_hub_model(source)) if source.startswith(HUB_PREFIX) else None
