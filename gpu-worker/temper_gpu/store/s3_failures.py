"""Turns an S3 server's refusal into a message, without the server's own text, which may quote what was signed."""

from typing import Any

from botocore import exceptions as boto
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from temper_gpu.contract import S3_REFUSALS
from temper_gpu.failures import TemperError

# The server does not answer, or not completely.
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

_NO_KEYS = (
    boto.NoCredentialsError,
    boto.PartialCredentialsError,
    boto.ProfileNotFound,
    boto.SSOError,
    boto.TokenRetrievalError,
)
_WAIT = "the work resumes by itself once it does"


def s3_failure(error: Exception, verb: str, place: str, has_answered: bool = False) -> TemperError:
    """`place` names the key, bucket or server. `has_answered`: it accepted a request of this process before."""
    name = type(error).__name__
    if isinstance(error, BROKEN):
        return TemperError("StoreUnavailable", f"the store must answer to {verb} {place}, got {name}; {_WAIT}")
    if isinstance(error, boto.ClientError):
        code, status = error_code(error), http_status(error)
        known = S3_REFUSALS.get(code) or S3_REFUSALS.get(str(status))
        if known is None and status >= 500:
            message = f"the store must be able to {verb} {place}, got {status} {code}; {_WAIT}"
            return TemperError("StoreUnavailable", message)
        retried, remedy = known or ("once-answered", "correct --store and the AWS_* settings")
        code = code if known else f"{status} {code}"
    elif isinstance(error, _NO_KEYS):
        code, (retried, remedy) = name, S3_REFUSALS["CredentialsProviderError"]
    else:
        code, retried, remedy = name, "never", "correct the AWS_* settings"
    is_retried = retried == "always" or (retried == "once-answered" and has_answered)
    message = f"the store refused to {verb} {place} ({code}): {remedy}"
    return TemperError("StoreUnavailable" if is_retried else "BadConfig", message)


def error_code(error: Exception) -> str:
    return str(_response(error).get("Error", {}).get("Code", ""))


def http_status(error: Exception) -> int:
    return int(_response(error).get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def retries(error: Exception) -> int:
    """The client's retries before this answer."""
    return int(_response(error).get("ResponseMetadata", {}).get("RetryAttempts", 0))


def _response(error: Exception) -> dict[str, Any]:
    return getattr(error, "response", None) or {}
