"""The tools of a request, and whether one must, may or must not be called."""

from dataclasses import dataclass
from typing import Any, Literal

from temper_gpu.failures import TemperError

REMEDY = "see OpenAI's API"


@dataclass(frozen=True)
class ToolChoice:
    kind: Literal["auto", "none", "required", "named"] = "auto"
    # Name of the only function that may be called.
    name: str | None = None
    # False ends the answer with its first call.
    parallel: bool = True

    @property
    def is_parsed(self) -> bool:
        return self.kind != "none"

    @property
    def is_opened(self) -> bool:
        """The turn begins with a call that the prompt opens; see `Prompts.call_opening`."""
        return self.kind in ("required", "named")

    @property
    def is_single(self) -> bool:
        return self.is_parsed and (self.kind == "named" or not self.parallel)


def parse_tools(tools: Any) -> list[dict[str, Any]] | None:
    """None without tools: an empty list has no effect."""
    if not isinstance(tools or [], list):
        raise refusal("tools must be a list of functions")
    for index, tool in enumerate(tools or []):
        if not isinstance(tool, dict) or tool.get("type") != "function" or function_name(tool) is None:
            raise refusal(f"tool {index} must be of type function and have a function with a name")
        if tool["function"].get("strict"):
            raise TemperError(
                "BadConfig",
                f"strict of tool {index} must be false or absent (arguments are sampled freely and not constrained to "
                "the schema), got true; leave it out, and check the arguments where the tool runs",
            )
    return tools or None


def parse_tool_choice(choice: Any, is_parallel: bool, tools: list[dict[str, Any]] | None) -> ToolChoice:
    if choice in ("auto", "none") and (tools or is_parallel):
        return ToolChoice(choice, None, is_parallel)
    if not tools:
        raise refusal("tool_choice and parallel_tool_calls need tools, but there are none")
    if choice == "required":
        return ToolChoice("required", None, is_parallel)
    name = function_name(choice) if isinstance(choice, dict) and choice.get("type") == "function" else None
    names = [function_name(tool) for tool in tools]
    if name not in names or name is None:
        raise refusal(f"tool_choice must be none, auto, required or one of the functions {', '.join(map(str, names))}")
    return ToolChoice("named", name, is_parallel)


def function_name(tool: dict[str, Any]) -> str | None:
    function = tool.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) and name else None


def refusal(rule: str) -> TemperError:
    return TemperError("BadConfig", f"{rule}; {REMEDY}")
