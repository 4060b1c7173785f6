"""HTTP answers: JSON, and what each failure means to a client."""

import logging
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from temper_gpu.contract import CONTEXT_TOO_LONG, INTERNAL_ERROR
from temper_gpu.engine.interface import ContextTooLong, DeadlinePassed, QueueFull
from temper_gpu.failures import TemperError
from temper_gpu.server.targets import NotFound

log = logging.getLogger(__name__)


class Refusal(Exception):
    """An answer that is an HTTP matter, not a failure of the engine."""

    def __init__(self, status: int, code: str, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s


def json_response(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(body), status, headers, "application/json")


def error_response(error: Refusal | TemperError) -> Response:
    status, _, retry_after_s = http_meaning(error)
    headers = {"retry-after": str(retry_after_s)} if retry_after_s else None
    return json_response(error_body(error), status, headers)


def error_body(error: Refusal | TemperError) -> dict[str, Any]:
    """OpenAI's shape; `type` is one of Temper's failure types."""
    status, code, _ = http_meaning(error)
    kind = error.type if isinstance(error, TemperError) else "EngineFailed" if status >= 500 else "BadConfig"
    return {"error": {"message": str(error), "type": kind, "param": None, "code": code}}


def unexpected(error: Exception, request: Request) -> Refusal:
    """A bug, or an unforeseen request. The message names only the error's class: a failed attempt keeps it, so it must
    be the same each time, and texts of exceptions may contain addresses and paths."""
    log.error("request failed", extra={"path": request.scope["path"]}, exc_info=error)
    kind = type(error).__name__
    message = f"the GPU worker failed on this request ({kind}); see 'request failed' in its log, or change it"
    return Refusal(500, INTERNAL_ERROR, message)


def http_meaning(error: Refusal | TemperError) -> tuple[int, str, int | None]:
    """Status, OpenAI's code, and after how many seconds to come again."""
    match error:
        case Refusal():
            return error.status, error.code, error.retry_after_s
        case ContextTooLong():
            return 400, CONTEXT_TOO_LONG, None
        case NotFound():
            return 404, "model_not_found", None
        case QueueFull():
            return 429, "queue_full", 1
        case DeadlinePassed():
            return 504, "deadline_passed", None
        case TemperError(type="BadConfig"):
            return 400, "bad_request", None
        case _ if error.retryable:
            return 503, "unavailable", 1
        case _:
            # Trying again would end the same way: a status that clients do not retry.
            return 422, "cannot_answer", None
