"""A small MCP server for `npm run bench -- mcp`: hundreds of it fit into memory. It forks a child that never ends."""

import json
import subprocess
import sys

SCHEMA = {"type": "object", "properties": {}}
TOOLS = [{"name": name, "inputSchema": SCHEMA} for name in ("add", "fork")]
added = 0


def call(name: str) -> str:
    global added
    if name == "fork":
        return str(subprocess.Popen(["sleep", "4021"], start_new_session=True).pid)
    added += 1
    return str(added)


def answer(method: str, params: dict) -> dict:
    if method == "initialize":
        info = {"name": "bench", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    return {"content": [{"type": "text", "text": call(params["name"])}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
