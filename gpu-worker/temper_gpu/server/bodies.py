"""Bodies of requests, read strictly: a parameter that would not be honoured is refused by name."""

import json
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from temper_gpu.failures import TemperError


def require(condition: bool, message: str) -> None:
    if not condition:
        raise TemperError("BadConfig", message)


def shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"


def flag(note: str, default: bool = False) -> Any:
    return Field(default, description=f"true or false; {note}")


def number(default: float, least: float, most: float, note: str = "") -> Any:
    return Field(default, ge=least, le=most, description=f"a number from {least:g} to {most:g}{note}")


def whole(default: int | None, least: int, most: int, note: str = "") -> Any:
    return Field(default, ge=least, le=most, description=f"a whole number from {least} to {most}{note}")


class Body(BaseModel):
    """Its fields are the parameters that are honoured. A field's description begins with the rule (up to a `;`), which
    refusals repeat. docs/http-api.md shows all parameters as a table; a test compares them."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)
    # Accepted, with the reason why they have no effect.
    no_effect: ClassVar[dict[str, str]] = {}
    # What to do instead, and the value besides null that asks for nothing.
    refused: ClassVar[dict[str, tuple[str, Any]]] = {}

    @classmethod
    def parse(cls, body: Any) -> Self:
        require(isinstance(body, dict), "the body must be a JSON object, got something else; see OpenAI's API")
        for name in [name for name in body if name not in cls.model_fields and name not in cls.no_effect]:
            require(name in cls.refused, f"parameter {name} must be one that this server supports; leave it out")
            remedy, neutral = cls.refused[name]
            rule = f"{name} must be {shown(neutral)} (nothing else is supported)"
            require(shown(body[name]) in ("null", shown(neutral)), f"{rule}, got {shown(body[name])}; {remedy}")
        given = {name: value for name, value in body.items() if name in cls.model_fields and value is not None}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            name = str(error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"][0])
            rule = str(cls.model_fields[name].description).partition(";")[0]
            raise TemperError("BadConfig", f"{name} must be {rule}, got {shown(body.get(name))}; change it") from None
