"""A server's refusal in words. Never with its own text: that may quote what was signed."""

from typing import Any

from botocore import exceptions as boto
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from temper_gpu.failures import FailureType, TemperError

# Nobody answers, or not to the end.
BROKEN = (
    boto.HTTPClientError,
    boto.ConnectionError,
    boto.IncompleteReadError,
    boto.CredentialRetrievalError,
    boto.MetadataRetrievalError,
    ResponseParserError,
    HTTPError,
    OSError,
)
FAILURES = (boto.BotoCoreError, boto.ClientError, *BROKEN)

_RIGHTS = "the key must be allowed s3:GetObject, s3:PutObject and s3:ListBucket on the bucket; correct its policy"
_KEY = "AWS_ACCESS_KEY_ID (or the profile in AWS_PROFILE) must be a key that this server accepts; correct it"
_SECRET = "AWS_SECRET_ACCESS_KEY must be the secret of AWS_ACCESS_KEY_ID; correct it"
_REGION = "AWS_REGION must be the bucket's region; correct it"
_BUCKET = "the bucket must exist; create it, or correct --store and AWS_ENDPOINT_URL"
_TOKEN = "AWS_SESSION_TOKEN has expired; renew it and start the worker again"

_REFUSALS: dict[str, tuple[FailureType, str]] = {
    "NoSuchBucket": ("BadConfig", _BUCKET),
    "InvalidBucketName": ("BadConfig", _BUCKET),
    "AccessDenied": ("BadConfig", _RIGHTS),
    "403": ("BadConfig", _RIGHTS),
    "AllAccessDisabled": ("BadConfig", _RIGHTS),
    "InvalidAccessKeyId": ("BadConfig", _KEY),
    "XAdminUserNotFound": ("BadConfig", _KEY),
    "InvalidToken": ("BadConfig", _KEY),
    "SignatureDoesNotMatch": ("BadConfig", _SECRET),
    "AuthorizationHeaderMalformed": ("BadConfig", _REGION),
    "PermanentRedirect": ("BadConfig", _REGION),
    "IllegalLocationConstraintException": ("BadConfig", _REGION),
    "NotImplemented": ("BadConfig", "the server must support conditional writes (If-None-Match: *); use one that does"),
    "RequestTimeTooSkewed": ("BadConfig", "this host's clock differs from the server's; synchronize it"),
    "ExpiredToken": ("StoreUnavailable", _TOKEN),
    "TokenRefreshRequired": ("StoreUnavailable", _TOKEN),
}
# What was right once: keys are rotated and clocks put right under a living run. As in TypeScript's table.
_MENDED_LATER = frozenset({"InvalidAccessKeyId", "RequestTimeTooSkewed", "SignatureDoesNotMatch"})
_NO_KEYS = (
    boto.NoCredentialsError,
    boto.PartialCredentialsError,
    boto.ProfileNotFound,
    boto.SSOError,
    boto.TokenRetrievalError,
)
_CREDENTIALS = (
    "keys must be in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in a profile named by AWS_PROFILE; set them"
)
_WAIT = "the work resumes by itself once it does"
# Of the client's errors, too many requests and a slow upload may pass.
_PASSING = frozenset({408, 409, 429})


def s3_failure(error: Exception, verb: str, place: str, has_answered: bool = False) -> TemperError:
    """`place` is what was asked: key, bucket, server. `has_answered`: it took a request of this process before."""
    if isinstance(error, boto.ClientError):
        return _refused(error, verb, place, has_answered)
    name = type(error).__name__
    if isinstance(error, BROKEN):
        return TemperError("StoreUnavailable", f"the store must answer to {verb} {place}, got {name}; {_WAIT}")
    if isinstance(error, _NO_KEYS):
        return TemperError(
            "StoreUnavailable" if has_answered else "BadConfig", f"to {verb} {place}, {_CREDENTIALS} ({name})"
        )
    return TemperError("BadConfig", f"the store must be able to {verb} {place}, got {name}; correct the AWS_* settings")


def _refused(error: boto.ClientError, verb: str, place: str, has_answered: bool) -> TemperError:
    code, status = error_code(error), http_status(error)
    known = _REFUSALS.get(code)
    if known is not None:
        kind: FailureType = "StoreUnavailable" if has_answered and code in _MENDED_LATER else known[0]
        return TemperError(kind, f"the store refused to {verb} {place} ({code}): {known[1]}")
    if status >= 500 or status in _PASSING or code in ("SlowDown", "RequestTimeout"):
        return TemperError(
            "StoreUnavailable", f"the store must be able to {verb} {place}, got {status} {code}; {_WAIT}"
        )
    return TemperError(
        "BadConfig", f"the store refused to {verb} {place} ({status} {code}); correct --store and the AWS_* settings"
    )


def error_code(error: Exception) -> str:
    return str(_response(error).get("Error", {}).get("Code", ""))


def http_status(error: Exception) -> int:
    return int(_response(error).get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def retries(error: Exception) -> int:
    """How often the client had asked again before this answer."""
    return int(_response(error).get("ResponseMetadata", {}).get("RetryAttempts", 0))


def _response(error: Exception) -> dict[str, Any]:
    return getattr(error, "response", None) or {}
