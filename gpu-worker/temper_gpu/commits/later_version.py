"""Values that a later version of Temper wrote or sent: valid, but unreadable for this version. The rules are those of
core/contract/failures.ts and core/contract/values.ts."""

from typing import Any

from pydantic import ValidationError

from temper_gpu.contract import RECORD_SCHEMA
from temper_gpu.failures import TemperError


def is_from_later_version(error: ValidationError) -> bool:
    """Whether each error is something that a later version may have added: an unknown member, or an unknown name of an
    enumeration. A known member of another type is an error in every version."""
    return all(_is_unknown(issue["type"], issue["input"], issue.get("ctx", {})) for issue in error.errors())


def _is_unknown(kind: str, given: Any, context: dict[str, Any]) -> bool:
    match kind:
        case "extra_forbidden" | "union_tag_invalid":
            return True
        case "literal_error":
            return isinstance(given, str) and str(context["expected"]).startswith("'")
        case _:
            return False


def describe(error: ValidationError) -> str:
    """The value's first error, and its place."""
    issue = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in issue["loc"]) or "as a whole"
    return f"{place}: {issue['msg']}"


def later_version(name: str, unknown: str) -> TemperError:
    return TemperError(
        "LaterVersion",
        f"{name} was made by a later version of Temper ({unknown}); upgrade Temper on this host, and leave the file as "
        "it is",
    )


def require_known_schema(record: Any, name: str) -> None:
    """Raises LaterVersion for a record whose `schema` is above this version's."""
    schema = record.get("schema") if isinstance(record, dict) else None
    if isinstance(schema, int) and not isinstance(schema, bool) and schema > RECORD_SCHEMA:
        raise later_version(name, f"schema {schema}; this version knows {RECORD_SCHEMA}")
