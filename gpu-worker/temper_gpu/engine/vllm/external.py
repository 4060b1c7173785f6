"""An external vLLM server: Temper neither starts nor ends it, and unloads what it loaded there.

It may be restarted, also with another model, and others may load adapters there. So each answer is compared with the
server's fingerprint, and with its list of models after the answer; a watch checks the server between answers, too. A
mismatch ends this server instance, and the next one is proven from the beginning (supervisor.py).
"""

import logging
import ssl
import threading
import time
from contextlib import suppress

from temper_gpu.engine.vllm import server
from temper_gpu.engine.vllm.client import Address, Answer, Client, Unreachable
from temper_gpu.engine.vllm.folders import SharedFolders
from temper_gpu.engine.vllm.server import Completion, ModelCard
from temper_gpu.engine.vllm.settings import External
from temper_gpu.failures import TemperError
from temper_gpu.model.models import BaseModel

# A busy server answers late; the connection to an unreachable one fails at once.
ANSWER_S = 30.0
# Timeout of optional work: unloading adapters that are no longer used.
DETACH_S = 3.0
RENEW_S = 600.0
START = "start it with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True in its environment"
SGLANG = (
    "which is an SGLang server: its answers do not name the adapter that sampled, so that nothing would tell whose "
    "tokens they are; start vLLM there"
)

log = logging.getLogger(__name__)


class ExternalServer:
    """One life of it, as far as it is seen from here: from its being found to its being lost."""

    def __init__(self, base: BaseModel, external: External) -> None:
        self._base = base
        self._external = external
        self.address = Address(external.key, url=external.url)
        self.folders = SharedFolders(external.folder, external.folder_there)
        self.ended = threading.Event()
        self.version = ""
        self._card: ModelCard | None = None
        self._fingerprint: str | None = None
        self._reason: TemperError | None = None

    @property
    def pid(self) -> None:
        return None

    @property
    def served_name(self) -> str:
        return self._base.name if self._card is None else self._card.name

    @property
    def context_window(self) -> int:
        own, card = self._base.context_window, self._card
        return own if card is None or card.context_window is None else min(own, card.context_window)

    def recorded(self) -> dict[str, str]:
        """Engine fields for a step's manifest, without address and paths."""
        fields = {"max_model_len": self.context_window, "system_fingerprint": self._fingerprint}
        flags = " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)
        return {"engine": f"vllm {self.version} (external)", "engineFlags": flags}

    def wait_until_ready(self, timeout_s: float) -> None:
        """Checks once; the caller retries. Raises a TemperError that says what is missing."""
        client = Client(self.address)
        try:
            self._find(client)
            self._require_loading(client)
            removed = self.folders.remove_left_behind()
            if removed:
                log.info("adapters that nobody used were removed", extra={"folders": removed})
        except TemperError:
            self.ended.set()
            raise
        finally:
            client.close()

    def proven(self, fingerprint: str | None) -> None:
        """Requires from now on that the server stays the same."""
        self._fingerprint = fingerprint
        threading.Thread(target=self._watch, name=f"watch of {self.address.server}", daemon=True).start()

    def require_same(self, completion: Completion) -> None:
        if completion.fingerprint != self._fingerprint:
            raise self.lost(
                server.LostServer(
                    f"{self.address.server} must stay the one that was proven ({self._fingerprint}), but was restarted "
                    f"as another ({completion.fingerprint}); retry"
                )
            )

    def confirm(self, client: Client, adapter: str | None, folder: str | None) -> None:
        """Checks after an answer that the server still lists the requested model, which therefore answered."""
        cards = {card.name: card for card in server.list_models(client, ANSWER_S)}
        self._require_card(cards.get(self.served_name))
        if adapter is None:
            return
        root = cards[adapter].root if adapter in cards else None
        if root != folder:
            what = "was unloaded there" if root is None else "was replaced there"
            raise server.LostAdapter(
                f"{self.address.server} must keep the adapter {adapter}, but it {what} while it answered; retry"
            )

    def lost(self, error: TemperError) -> TemperError:
        """Records a loss that a call or the watch found. Returns the error."""
        if not self.ended.is_set():
            log.warning("the vLLM server is lost: %s", error)
            self._reason = self._reason or error
            self.ended.set()
        return error

    def failure(self) -> TemperError:
        return self._reason or TemperError("EngineFailed", f"{self.address.server} was left; retry")

    def close(self) -> None:
        self.ended.set()

    def _find(self, client: Client) -> None:
        self.version = self._version(client)
        cards = server.list_models(client, ANSWER_S)
        bases = [card for card in cards if card.parent is None]
        if not bases:
            raise TemperError("EngineFailed", f"{self.address.server} must serve a model, but lists none; retry")
        # Several are names of one model: vLLM answers under the first.
        self._card = bases[0]

    def _version(self, client: Client) -> str:
        """Runs first, so it finds out whether the server is reachable, and which kind it is."""
        try:
            answer = client.get("/version", ANSWER_S)
        except (Unreachable, TimeoutError) as error:
            raise self._unreachable(error) from error
        found = answer.body.get("version") if isinstance(answer.body, dict) else None
        if answer.status != 404:
            server.require_ok(self.address, answer)
        if isinstance(found, str) and found and not self._is_sglang(client):
            return found[:80]
        what = SGLANG if self._is_sglang(client) else "which tells no version at /version; start vLLM there"
        raise TemperError(
            "BadConfig",
            f"engine.vllm.url must lead to a vLLM server, but leads to {self._external.url}, {what}, or correct it in "
            "temporal.config.ts",
        )

    def _is_sglang(self, client: Client) -> bool:
        with suppress(TemperError):
            return any(card.owner == "sglang" for card in server.list_models(client, ANSWER_S))
        return False

    def _unreachable(self, error: Exception) -> TemperError:
        reason = str(error) or f"no answer within {ANSWER_S:g} s"
        if isinstance(error.__cause__, ssl.SSLCertVerificationError):
            return TemperError(
                "BadConfig",
                f"{self.address.server} must have a certificate that this host trusts, but has not ({reason}); add its "
                "authority to the system's, or set SSL_CERT_FILE",
            )
        return server.LostServer(
            f"{self.address.server} must answer, but does not ({reason}); start it, or correct engine.vllm.url in "
            "temporal.config.ts. Temper tries again"
        )

    def _require_loading(self, client: Client) -> None:
        """Asks for a folder without an adapter: the refusal says whether the server loads any, and sees the folder."""
        sign = self.folders.write_sign()
        try:
            answer = server.try_load(client, f"temper-{sign.rpartition('-')[2]}", sign)
        finally:
            self.folders.remove(sign)
        missing = what_is_missing(answer)
        if missing is not None:
            what, remedy = missing
            raise TemperError("BadConfig", f"{self.address.server} must {what}; {remedy.format(self._external)}")
        if answer.status in (401, 403):
            server.require_ok(self.address, answer)

    def _require_card(self, card: ModelCard | None) -> None:
        if card != self._card:
            raise self.lost(
                server.LostServer(
                    f"{self.address.server} must go on serving {self.served_name} as it did when it was proven, but "
                    "lists it otherwise now; retry"
                )
            )

    def _watch(self) -> None:
        client = Client(self.address)
        renewed = time.monotonic()
        while not self.ended.wait(self._external.watch_s):
            try:
                self.confirm(client, None, None)
            except TemperError as error:
                self.lost(error)
            if time.monotonic() - renewed > RENEW_S:
                self.folders.renew()
                renewed = time.monotonic()
        client.close()


def what_is_missing(answer: Answer) -> tuple[str, str] | None:
    """Reads the missing part from the refusal of a folder without an adapter; None: nothing is missing."""
    if answer.status == 404 and answer.body == {"detail": "Not Found"}:
        return "load adapters at run time, but has no /v1/load_lora_adapter", START
    if "--enable-lora" in answer.message:
        return "be started with --enable-lora, but was not", START
    if answer.status == 404 or "ermission denied" in answer.message:
        return (
            f"see the folder of engine.vllm.adapters and read it, but does not ({answer.message})",
            "share {0.folder} with its host, and set engine.vllm.adapters.as to its path there, now {0.folder_there}",
        )
    return None
