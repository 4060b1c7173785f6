"""Generated from core/contract/contract.ts by test/contract/generate.ts; a test regenerates and compares. Do not edit."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from typing_extensions import TypeAliasType


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True, frozen=True)


class AwaitedRewards(Strict):
    step: Annotated[int, Field(ge=1, le=9007199254740991)]
    missing: Annotated[int, Field(ge=0, le=9007199254740991)]
    attempts: Annotated[int, Field(ge=0, le=9007199254740991)]
    waiting: Annotated[int, Field(ge=0, le=9007199254740991)]
    groups: Annotated[int, Field(ge=0, le=9007199254740991)]
    since: str
    next_deadline: Annotated[str | None, Field(alias="nextDeadline")]
    complete: Annotated[int, Field(ge=0, le=9007199254740991)]
    needed: Annotated[int, Field(ge=1, le=9007199254740991)]


class BlobRef(Strict):
    key: Annotated[str, Field(pattern="^blobs\\/[0-9a-f]{64}$")]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(ge=0, le=9007199254740991)]


class Branch(Strict):
    branch: Annotated[int, Field(ge=1, le=9007199254740991)]
    from_branch: Annotated[int, Field(alias="fromBranch", ge=0, le=9007199254740991)]
    from_step: Annotated[int, Field(alias="fromStep", ge=0, le=9007199254740991)]


class CheckTemplateInput(Strict):
    model: str
    source: str | None = None
    chat_template: Annotated[str | None, Field(alias="chatTemplate")] = None


AdaptersAdditionalProperty = TypeAliasType(
    "AdaptersAdditionalProperty", Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
)


class Checkpoint(Strict):
    run: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    step: Annotated[int, Field(ge=0, le=9007199254740991)]
    manifest_sha256: Annotated[
        str, Field(alias="manifestSha256", pattern="^[0-9a-f]{64}$")
    ]
    adapter_sha256: Annotated[
        str, Field(alias="adapterSha256", pattern="^[0-9a-f]{64}$")
    ]
    adapters: (
        dict[
            Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")],
            AdaptersAdditionalProperty,
        ]
        | None
    ) = None


class CheckpointRole(Strict):
    kind: Literal["checkpoint"]
    checkpoint: Checkpoint
    policy: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,31}$")]


class CispoLoss(Strict):
    name: Literal["cispo"]
    epsilon_low: Annotated[float, Field(alias="epsilonLow", ge=0.0, le=1.0)]
    epsilon_high: Annotated[float, Field(alias="epsilonHigh", ge=0.0)]


class Dollars(Strict):
    gpu: Annotated[float | None, Field(ge=0.0)] = None
    judge: Annotated[float | None, Field(ge=0.0)] = None
    hosted: Annotated[float | None, Field(ge=0.0)] = None
    eval: Annotated[float | None, Field(ge=0.0)] = None


class DppoLoss(Strict):
    name: Literal["dppo"]
    max_shift: Annotated[float, Field(alias="maxShift", gt=0.0, lt=1.0)]
    log_ratio_penalty: Annotated[float, Field(alias="logRatioPenalty", ge=0.0)]


Device = TypeAliasType("Device", Annotated[int, Field(ge=0, le=9007199254740991)])


class Adapters(Strict):
    folder: Annotated[str | None, Field(pattern="^([A-Za-z]:)?[\\\\/]")] = None
    as_: Annotated[str | None, Field(alias="as", pattern="^([A-Za-z]:)?[\\\\/]")] = None


class Vllm(Strict):
    args: list[str] = []
    devices: list[Device] = []
    policies: Annotated[int, Field(ge=1, le=1024)] = 2
    url: str | None = None
    adapters: Adapters = Adapters()


class EngineSettings(Strict):
    threads: Annotated[int, Field(ge=1, le=1024)] = 2
    device: Annotated[str, Field(pattern="^(auto|cpu|cuda(:[0-9]+)?)$")] = "auto"
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    devices: Annotated[int, Field(ge=1, le=64)] = 1
    shard_base_model: Annotated[bool, Field(alias="shardBaseModel")] = False
    load_in4bit: Annotated[bool, Field(alias="loadIn4bit")] = False
    kv_cache_bytes: Annotated[
        int | None, Field(alias="kvCacheBytes", ge=1048576, le=9007199254740991)
    ] = None
    prefix_cache_bytes: Annotated[
        int | None, Field(alias="prefixCacheBytes", ge=0, le=9007199254740991)
    ] = None
    slots: Annotated[int, Field(ge=16, le=2048)] = 128
    kind: Literal["embedded", "vllm"] = "embedded"
    vllm: Vllm = Vllm()


class LostClass(Strict):
    field: str
    value: str
    attempts: Annotated[int, Field(ge=1, le=9007199254740991)]


class EvalResult(Strict):
    step: Annotated[int, Field(ge=0, le=9007199254740991)]
    attempts: Annotated[int, Field(ge=0, le=9007199254740991)]
    scenarios: Annotated[int | None, Field(ge=1, le=9007199254740991)] = None
    failed: Annotated[int, Field(ge=0, le=9007199254740991)]
    reward: float | None
    metrics: dict[str, float]
    rollouts_sha256: Annotated[
        str, Field(alias="rolloutsSha256", pattern="^[0-9a-f]{64}$")
    ]
    same_answer_share: Annotated[float | None, Field(alias="sameAnswerShare")] = None
    lost_classes: Annotated[list[LostClass] | None, Field(alias="lostClasses")] = None


ChatTemplateKwargs = TypeAliasType(
    "ChatTemplateKwargs", Annotated[str, Field(max_length=1000)]
)


class ExampleRendering(Strict):
    dataset: BlobRef
    turns: Literal["all", "last"]
    max_example_tokens: Annotated[
        int | None, Field(alias="maxExampleTokens", ge=1, le=9007199254740991)
    ] = None
    overlong: Literal["mask", "truncate", "refuse"]
    chat_template_kwargs: Annotated[
        dict[Annotated[str, StringConstraints(max_length=64)], ChatTemplateKwargs | float | bool] | None,
        Field(alias="chatTemplateKwargs"),
    ] = None
    chat_template_sha256: Annotated[
        str | None, Field(alias="chatTemplateSha256", pattern="^[0-9a-f]{64}$")
    ] = None


class ExportInput(Strict):
    store: str
    policy: str
    models: str | None = None
    folder: str
    format: Literal["merged", "gguf", "mlx"] = "merged"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    quantize: Literal["q8_0"] | None = None
    chat_template_sha256: Annotated[
        str | None, Field(alias="chatTemplateSha256", pattern="^[0-9a-f]{64}$")
    ] = None


class FetchModelInput(Strict):
    source: str


Conversation = TypeAliasType(
    "Conversation", Annotated[int, Field(ge=0, le=9007199254740991)]
)


class GatherInput(Strict):
    run: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    step: Annotated[int, Field(ge=1, le=9007199254740991)]
    recordings: BlobRef
    conversations: Annotated[list[Conversation], Field(min_length=1)]
    minimum_group_size: Annotated[
        int, Field(alias="minimumGroupSize", ge=1, le=9007199254740991)
    ]
    truncated: Literal["mask", "penalise", "keep"]
    overlong_buffer: Annotated[
        int, Field(alias="overlongBuffer", ge=0, le=9007199254740991)
    ] = 0
    overlong_penalty: Annotated[float, Field(alias="overlongPenalty", gt=0.0)] = 1
    baseline: Literal["group", "rae"] | None = None


PromptTokenId = TypeAliasType(
    "PromptTokenId", Annotated[int, Field(ge=0, le=9007199254740991)]
)


class Score(Strict):
    token: str
    logprob: float


class GivenAnswer(Strict):
    prompt_token_ids: Annotated[list[PromptTokenId], Field(alias="promptTokenIds")]
    text: str
    scores: list[Score] | None
    has_ended: Annotated[bool, Field(alias="hasEnded")]


class GpuWorkerSettings(Strict):
    store: str
    models: str | None = None
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8017
    allow_host: Annotated[list[str], Field(alias="allowHost")] = []
    role: Literal["train", "sample", "sample-any-base"] = "train"
    temporal_address: Annotated[str | None, Field(alias="temporalAddress")] = None
    namespace: str | None = None
    queue: str = "gpu"
    engine: EngineSettings = EngineSettings()
    vllm_python: Annotated[str | None, Field(alias="vllmPython")] = None


class GroupRef(Strict):
    group: Annotated[int, Field(ge=0, le=9007199254740991)]
    rollouts_sha256: Annotated[
        str, Field(alias="rolloutsSha256", pattern="^[0-9a-f]{64}$")
    ]
    judged_sha256: Annotated[str, Field(alias="judgedSha256", pattern="^[0-9a-f]{64}$")]
    step: Annotated[int | None, Field(ge=1, le=9007199254740991)] = None
    branch: Annotated[int | None, Field(ge=0, le=9007199254740991)] = None


class GroupResult(Strict):
    step: Annotated[int, Field(ge=1, le=9007199254740991)]
    group: Annotated[int, Field(ge=0, le=9007199254740991)]
    scenario: Annotated[int, Field(ge=0, le=9007199254740991)]
    rollouts_sha256: Annotated[
        str, Field(alias="rolloutsSha256", pattern="^[0-9a-f]{64}$")
    ]
    judged_sha256: Annotated[
        str | None, Field(alias="judgedSha256", pattern="^[0-9a-f]{64}$")
    ]
    attempts: Annotated[int, Field(ge=1, le=9007199254740991)]
    failed: Annotated[int, Field(ge=0, le=9007199254740991)]
    truncated: Annotated[int, Field(ge=0, le=9007199254740991)]
    calls: Annotated[int, Field(ge=0, le=9007199254740991)]
    sampled_tokens: Annotated[
        int, Field(alias="sampledTokens", ge=0, le=9007199254740991)
    ]
    rewards: list[float]
    metrics: dict[str, float]
    role_rewards: Annotated[
        dict[Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")], list[float | None]] | None,
        Field(alias="roleRewards"),
    ] = None
    use: Literal["trained", "no-variance", "too-few-attempts", "no-sampled-tokens", "all-truncated", "stale", "unjudged"]


class GspoLoss(Strict):
    name: Literal["gspo"]
    epsilon_low: Annotated[float, Field(alias="epsilonLow", ge=0.0, le=1.0)]
    epsilon_high: Annotated[float, Field(alias="epsilonHigh", ge=0.0)]


class HostedRole(Strict):
    kind: Literal["hosted"]
    model: Annotated[str, Field(max_length=200, min_length=1)]


UnpricedItem = TypeAliasType("UnpricedItem", Annotated[str, Field(max_length=200)])


class HostedUsage(Strict):
    calls: Annotated[int, Field(ge=0, le=9007199254740991)]
    prompt_tokens: Annotated[
        int, Field(alias="promptTokens", ge=0, le=9007199254740991)
    ]
    completion_tokens: Annotated[
        int, Field(alias="completionTokens", ge=0, le=9007199254740991)
    ]
    usd: Annotated[float, Field(ge=0.0)]
    unpriced: list[UnpricedItem] | None = None


class HubDataset(Strict):
    dataset: Annotated[str, Field(max_length=200)]
    config: Annotated[str, Field(max_length=200)]
    split: Annotated[str, Field(max_length=200)]
    revision: Annotated[str | None, Field(pattern="^[0-9a-f]{40}$")]


class ImportanceSamplingLoss(Strict):
    name: Literal["importance_sampling"]


Policy = TypeAliasType(
    "Policy", Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,31}$")]
)


class Group(Strict):
    step: Annotated[int, Field(ge=1, le=9007199254740991)]
    branch: Annotated[int | None, Field(ge=0, le=9007199254740991)] = None
    group: Annotated[int, Field(ge=0, le=9007199254740991)]
    scenario: Annotated[int, Field(ge=0, le=9007199254740991)]
    inputs_sha256: Annotated[str, Field(alias="inputsSha256", pattern="^[0-9a-f]{64}$")]
    over: Literal["timeout", "stale"] | None = None


class WaitingItem(Strict):
    step: Annotated[int, Field(ge=1, le=9007199254740991)]
    group: Annotated[int, Field(ge=0, le=9007199254740991)]
    missing: Annotated[int, Field(ge=0, le=9007199254740991)]
    attempts: Annotated[int, Field(ge=0, le=9007199254740991)]
    played_at: Annotated[
        int | None, Field(alias="playedAt", ge=-9007199254740991, le=9007199254740991)
    ]


class JudgeGivenResult(Strict):
    decided: list[GroupResult]
    waiting: list[WaitingItem]


class WindowItem(Strict):
    group: Annotated[int, Field(ge=0, le=9007199254740991)]
    rollouts_sha256: Annotated[
        str, Field(alias="rolloutsSha256", pattern="^[0-9a-f]{64}$")
    ]
    step: Annotated[int | None, Field(ge=1, le=9007199254740991)] = None
    branch: Annotated[int | None, Field(ge=0, le=9007199254740991)] = None
    judged_sha256: Annotated[
        str | None, Field(alias="judgedSha256", pattern="^[0-9a-f]{64}$")
    ]
    is_stale: Annotated[Literal[True] | None, Field(alias="isStale")] = None


class JudgeSpending(Strict):
    calls: Annotated[int, Field(ge=0, le=9007199254740991)]
    cached: Annotated[int, Field(ge=0, le=9007199254740991)]
    prompt_tokens: Annotated[
        int, Field(alias="promptTokens", ge=0, le=9007199254740991)
    ]
    completion_tokens: Annotated[
        int, Field(alias="completionTokens", ge=0, le=9007199254740991)
    ]
    usd: Annotated[float | None, Field(ge=0.0)]


class LeagueOpponent(Strict):
    checkpoint: Checkpoint
    played: Annotated[int, Field(ge=0, le=9007199254740991)]
    won: Annotated[float, Field(ge=0.0)]


class LeagueRole(Strict):
    kind: Literal["league"]
    policy: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,31}$")]
    every: Annotated[int, Field(ge=1, le=9007199254740991)]
    keep: Annotated[int, Field(ge=1, le=64)]


class LeagueScore(Strict):
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    step: Annotated[int, Field(ge=0, le=9007199254740991)]
    played: Annotated[int, Field(ge=0, le=9007199254740991)]
    won: Annotated[float, Field(ge=0.0)]


LeagueScores = TypeAliasType(
    "LeagueScores",
    dict[
        Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")],
        list[LeagueScore],
    ],
)


Layer = TypeAliasType("Layer", Annotated[int, Field(ge=0, le=9007199254740991)])


class LoraConfig(Strict):
    rank: Annotated[int, Field(ge=1, le=512)]
    alpha: Annotated[float, Field(gt=0.0)]
    target_modules: Annotated[
        list[str] | None, Field(alias="targetModules", min_length=1)
    ]
    layers: Annotated[list[Layer] | None, Field(min_length=1)] = None
    rslora: bool = False
    dora: bool = False
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0


class Parent(Strict):
    step: Annotated[int, Field(ge=0, le=9007199254740991)]
    manifest_sha256: Annotated[
        str, Field(alias="manifestSha256", pattern="^[0-9a-f]{64}$")
    ]


Platform = TypeAliasType(
    "Platform", Annotated[int, Field(ge=-9007199254740991, le=9007199254740991)]
)


class MeasureInput(Strict):
    store: str
    policy: str
    models: str | None = None
    answers: list[GivenAnswer]
    device: Annotated[str, Field(pattern="^(auto|cpu|cuda(:[0-9]+)?)$")] = "auto"


class ModelPlanInput(Strict):
    model: str
    source: str | None = None
    chat_template: Annotated[str | None, Field(alias="chatTemplate")] = None
    context: Annotated[int | None, Field(ge=1, le=9007199254740991)] = None
    micro_batch_tokens: Annotated[
        int, Field(alias="microBatchTokens", ge=1, le=9007199254740991)
    ]
    lora: LoraConfig | None
    optimizer: Literal["adamw", "adamw_8bit"] = "adamw"
    trains_entropy: Annotated[bool, Field(alias="trainsEntropy")] = False
    compared: Annotated[int, Field(ge=0, le=2)] = 0
    fit: bool = False
    engine: EngineSettings = EngineSettings()


class OpenGroup(Strict):
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    policy: Checkpoint
    staleness: Annotated[int, Field(ge=0, le=9007199254740991)]
    inputs_sha256: Annotated[str, Field(alias="inputsSha256", pattern="^[0-9a-f]{64}$")]
    result: GroupResult


class OptimizerConfig(Strict):
    weight_decay: Annotated[float, Field(alias="weightDecay", ge=0.0)]
    max_grad_norm: Annotated[float, Field(alias="maxGradNorm", gt=0.0)]
    kind: Literal["adamw", "adamw_8bit"] = "adamw"
    beta1: Annotated[float, Field(ge=0.0, lt=1.0)]
    beta2: Annotated[float, Field(ge=0.0, lt=1.0)]
    epsilon: Annotated[float, Field(gt=0.0)]


class Pause(Strict):
    since: str
    reason: str | None


class PolicyFiles(Strict):
    adapter: BlobRef
    optimizer: BlobRef


class PolicyRole(Strict):
    kind: Literal["policy"]
    policy: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,31}$")]


class PpoLoss(Strict):
    name: Literal["ppo"]
    epsilon_low: Annotated[float, Field(alias="epsilonLow", ge=0.0, le=1.0)]
    epsilon_high: Annotated[float, Field(alias="epsilonHigh", ge=0.0)]
    dual_clip: Annotated[float | None, Field(alias="dualClip", gt=1.0)]


class Prepared(Strict):
    scenarios: BlobRef
    train_scenarios: Annotated[
        int, Field(alias="trainScenarios", ge=1, le=9007199254740991)
    ]
    eval_scenarios: Annotated[
        int, Field(alias="evalScenarios", ge=1, le=9007199254740991)
    ]
    eval_scenarios_of: Annotated[
        int | None, Field(alias="evalScenariosOf", ge=1, le=9007199254740991)
    ] = None
    held_out: Annotated[bool, Field(alias="heldOut")]
    agent_code_sha256: Annotated[
        str, Field(alias="agentCodeSha256", pattern="^[0-9a-f]{64}$")
    ]
    datasets: list[HubDataset] | None = None


LeftOutAdditionalProperty = TypeAliasType(
    "LeftOutAdditionalProperty", Annotated[int, Field(ge=1, le=9007199254740991)]
)


class ProductionSource(Strict):
    run: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    at_least: Annotated[int, Field(alias="atLeast", ge=1, le=9007199254740991)]
    max_policy_age: Annotated[
        int, Field(alias="maxPolicyAge", ge=0, le=9007199254740991)
    ]
    epochs: Annotated[int, Field(ge=1, le=9007199254740991)]


class Promoted(Strict):
    reason: str | None


class RecordedSampler(Strict):
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    step: Annotated[int, Field(ge=0, le=9007199254740991)]
    manifest_sha256: Annotated[
        str, Field(alias="manifestSha256", pattern="^[0-9a-f]{64}$")
    ]
    adapter_sha256: Annotated[
        str, Field(alias="adapterSha256", pattern="^[0-9a-f]{64}$")
    ]
    age: Annotated[int, Field(ge=0, le=9007199254740991)]


class Weights(Strict):
    review: Annotated[float, Field(gt=0.0)]
    agent: Annotated[float, Field(ge=0.0)]


class ReviewConfig(Strict):
    pairwise: bool
    comparisons_per_attempt: Annotated[
        int, Field(alias="comparisonsPerAttempt", ge=2, le=9007199254740991)
    ]
    reviewers: Annotated[int, Field(ge=1, le=9007199254740991)]
    question: Annotated[str | None, Field(max_length=2000)]
    weights: Weights


Role = TypeAliasType(
    "Role",
    Annotated[
        PolicyRole | CheckpointRole | HostedRole | LeagueRole,
        Field(discriminator="kind"),
    ],
)


class RolloutConfig(Strict):
    temperature: Annotated[float, Field(gt=0.0, le=2.0)]
    max_tokens: Annotated[int, Field(alias="maxTokens", ge=1, le=9007199254740991)]
    chat_template_sha256: Annotated[
        str | None, Field(alias="chatTemplateSha256", pattern="^[0-9a-f]{64}$")
    ] = None
    chat_template_kwargs: Annotated[
        dict[Annotated[str, StringConstraints(max_length=64)], ChatTemplateKwargs | float | bool] | None,
        Field(alias="chatTemplateKwargs"),
    ] = None
    max_calls_per_attempt: Annotated[
        int, Field(alias="maxCallsPerAttempt", ge=1, le=9007199254740991)
    ]
    attempt_timeout_ms: Annotated[
        int, Field(alias="attemptTimeoutMs", ge=1, le=9007199254740991)
    ]
    call_timeout_ms: Annotated[
        int, Field(alias="callTimeoutMs", ge=1, le=9007199254740991)
    ]
    call_retry_budget_ms: Annotated[
        int, Field(alias="callRetryBudgetMs", ge=0, le=9007199254740991)
    ]


class OverlapItem(Strict):
    step: Annotated[int, Field(ge=1, le=9007199254740991)]
    phase: str
    policy: Annotated[int, Field(ge=0, le=9007199254740991)]


class Sampler(Strict):
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    step: Annotated[int, Field(ge=0, le=9007199254740991)]
    manifest_sha256: Annotated[
        str, Field(alias="manifestSha256", pattern="^[0-9a-f]{64}$")
    ]
    adapter_sha256: Annotated[
        str, Field(alias="adapterSha256", pattern="^[0-9a-f]{64}$")
    ]
    staleness: Annotated[int, Field(ge=1, le=9007199254740991)]
    foreign: Literal[True] | None = None


class SapoLoss(Strict):
    name: Literal["sapo"]
    tau_positive: Annotated[float, Field(alias="tauPositive", gt=0.0)]
    tau_negative: Annotated[float, Field(alias="tauNegative", gt=0.0)]


class Seat(Strict):
    checkpoint: Checkpoint
    policy: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,31}$")]


Seats = TypeAliasType(
    "Seats",
    dict[
        Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")], Seat
    ],
)


class SettingChange(Strict):
    setting: Literal["learningRate", "temperature", "steps", "groupSize", "evalEvery", "gpuUsdPerHour", "maxCostUsd", "maxHours"]
    from_: Annotated[float | None, Field(alias="from")]
    to: float
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    step: Annotated[int, Field(ge=1, le=9007199254740991)]
    reason: str | None


class StartAdapter(Strict):
    weights: BlobRef
    config: BlobRef


class StepCosts(Strict):
    seconds: Annotated[float, Field(ge=0.0)]
    usd: Dollars
    cumulative_usd: Annotated[float, Field(alias="cumulativeUsd", ge=0.0)]


StepMetrics = TypeAliasType("StepMetrics", dict[str, float | None])


UnusedAdditionalProperty = TypeAliasType(
    "UnusedAdditionalProperty", Annotated[int, Field(ge=0, le=9007199254740991)]
)


class SupervisedConfig(Strict):
    dataset: BlobRef
    steps: Annotated[int | None, Field(ge=1, le=9007199254740991)] = None
    examples_per_step: Annotated[
        int, Field(alias="examplesPerStep", ge=1, le=9007199254740991)
    ]
    turns: Literal["all", "last"]
    max_example_tokens: Annotated[
        int | None, Field(alias="maxExampleTokens", ge=1, le=9007199254740991)
    ] = None
    overlong: Literal["mask", "truncate", "refuse"]
    examples: Annotated[int, Field(ge=2, le=9007199254740991)]
    held_out: Annotated[int, Field(alias="heldOut", ge=1, le=9007199254740991)]
    learning_rate: Annotated[float | None, Field(alias="learningRate", ge=0.0)] = None
    learning_rate_schedule: Annotated[
        Literal["constant", "linear", "cosine"] | None,
        Field(alias="learningRateSchedule"),
    ] = None


Example = TypeAliasType("Example", Annotated[int, Field(ge=0, le=9007199254740991)])


HeldOutItem = TypeAliasType(
    "HeldOutItem", Annotated[int, Field(ge=0, le=9007199254740991)]
)


class SupervisedStep(Strict):
    rendering: ExampleRendering
    examples: Annotated[list[Example], Field(min_length=1)]
    held_out: Annotated[
        list[HeldOutItem] | None, Field(alias="heldOut", min_length=1)
    ] = None
    scores_parent: Annotated[bool | None, Field(alias="scoresParent")] = None


class TrainResult(Strict):
    checkpoint: Checkpoint
    metrics: StepMetrics
    seconds: dict[str, float]
    found: bool


TrainedRolesAdditionalProperty = TypeAliasType(
    "TrainedRolesAdditionalProperty",
    Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,31}$")],
)


TrainedRoles = TypeAliasType(
    "TrainedRoles",
    dict[
        Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")],
        TrainedRolesAdditionalProperty,
    ],
)


class Usage(Strict):
    prompt_tokens: Annotated[
        int, Field(alias="promptTokens", ge=0, le=9007199254740991)
    ]
    cached_prompt_tokens: Annotated[
        int, Field(alias="cachedPromptTokens", ge=0, le=9007199254740991)
    ]
    sampled_tokens: Annotated[
        int, Field(alias="sampledTokens", ge=0, le=9007199254740991)
    ]
    hosted: HostedUsage | None = None


class AmendInput(Strict):
    run: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    number: Annotated[int, Field(ge=1, le=9007199254740991)]
    changes: Annotated[list[SettingChange], Field(min_length=1)]


class CheckExamplesInput(Strict):
    model: str
    source: str | None = None
    chat_template: Annotated[str | None, Field(alias="chatTemplate")] = None
    dataset: str
    rendering: ExampleRendering


class LastStep(Strict):
    seconds: Annotated[float, Field(ge=0.0)]
    usd: Dollars


class SinceStep(Strict):
    seconds: Annotated[float, Field(ge=0.0)]
    usd: Dollars


class EvaluateInput(Strict):
    run: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    step: Annotated[int, Field(ge=0, le=9007199254740991)]
    agent: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    agent_code_sha256: Annotated[
        str, Field(alias="agentCodeSha256", pattern="^[0-9a-f]{64}$")
    ]
    scenarios: BlobRef
    first_scenario: Annotated[
        int, Field(alias="firstScenario", ge=0, le=9007199254740991)
    ]
    count: Annotated[int, Field(ge=1, le=9007199254740991)]
    seed: Annotated[int, Field(ge=0, le=9007199254740991)]
    policy: Checkpoint
    roles: TrainedRoles | None = None
    seats: Seats | None = None
    start: Checkpoint | None = None
    rollout: RolloutConfig
    inputs_sha256: Annotated[str, Field(alias="inputsSha256", pattern="^[0-9a-f]{64}$")]


class Evaluated(Strict):
    step: Annotated[int, Field(ge=0, le=9007199254740991)]
    attempts: Annotated[int, Field(ge=0, le=9007199254740991)]
    scenarios: Annotated[int | None, Field(ge=1, le=9007199254740991)] = None
    failed: Annotated[int, Field(ge=0, le=9007199254740991)]
    reward: float | None
    metrics: dict[str, float]
    rollouts_sha256: Annotated[
        str, Field(alias="rolloutsSha256", pattern="^[0-9a-f]{64}$")
    ]
    same_answer_share: Annotated[float | None, Field(alias="sameAnswerShare")] = None
    lost_classes: Annotated[list[LostClass] | None, Field(alias="lostClasses")] = None
    usage: Usage | None = None


class ExternalConfig(Strict):
    name: Annotated[str | None, Field(max_length=63)] = None
    weight: float | None = None
    timeout_ms: Annotated[
        int | None, Field(alias="timeoutMs", ge=1, le=9007199254740991)
    ] = None
    on_timeout: Annotated[float | None, Field(alias="onTimeout")] = None
    minimum: Annotated[int | None, Field(ge=0, le=9007199254740991)] = None
    review: ReviewConfig | None = None


class GatherResult(Strict):
    groups: list[GroupResult]


class InitialiseInput(Strict):
    run: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    base_model: Annotated[
        str,
        Field(
            alias="baseModel",
            max_length=200,
            pattern="^[A-Za-z0-9][A-Za-z0-9._-]*(\\/[A-Za-z0-9][A-Za-z0-9._-]*)*(@[0-9a-f]{40})?$",
        ),
    ]
    seed: Annotated[int, Field(ge=0, le=9007199254740991)]
    lora: LoraConfig | None
    parent: Checkpoint | None
    start_adapter: Annotated[StartAdapter | None, Field(alias="startAdapter")] = None
    chat_template_kwargs: Annotated[
        dict[Annotated[str, StringConstraints(max_length=64)], ChatTemplateKwargs | float | bool] | None,
        Field(alias="chatTemplateKwargs"),
    ] = None
    chat_template_sha256: Annotated[
        str | None, Field(alias="chatTemplateSha256", pattern="^[0-9a-f]{64}$")
    ] = None
    supervised: ExampleRendering | None = None
    policies: list[Policy] | None = None
    optimizer_kind: Annotated[
        Literal["adamw", "adamw_8bit"], Field(alias="optimizerKind")
    ] = "adamw"
    inputs_sha256: Annotated[str, Field(alias="inputsSha256", pattern="^[0-9a-f]{64}$")]


class JudgeGivenInput(Strict):
    run: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    minimum_group_size: Annotated[
        int, Field(alias="minimumGroupSize", ge=2, le=9007199254740991)
    ]
    truncated: Literal["mask", "penalise", "keep"]
    overlong_buffer: Annotated[
        int, Field(alias="overlongBuffer", ge=0, le=9007199254740991)
    ] = 0
    overlong_penalty: Annotated[float, Field(alias="overlongPenalty", gt=0.0)] = 1
    baseline: Literal["group", "rae"] | None = None
    judge: Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._:@/~+-]{0,199}$")]
    external: ExternalConfig
    groups: Annotated[list[Group], Field(min_length=1)]


class JudgeGroupResult(Strict):
    group: GroupResult
    spent: JudgeSpending
    seconds: Annotated[float, Field(ge=0.0)]


class JudgeInput(Strict):
    run: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    step: Annotated[int, Field(ge=1, le=9007199254740991)]
    most: Annotated[int, Field(ge=1, le=9007199254740991)]
    window: list[WindowItem]
    minimum_group_size: Annotated[
        int, Field(alias="minimumGroupSize", ge=1, le=9007199254740991)
    ]
    truncated: Literal["mask", "penalise", "keep"]
    overlong_buffer: Annotated[
        int, Field(alias="overlongBuffer", ge=0, le=9007199254740991)
    ] = 0
    overlong_penalty: Annotated[float, Field(alias="overlongPenalty", gt=0.0)] = 1
    baseline: Literal["group", "rae"] | None = None
    roles: TrainedRoles | None = None
    inputs_sha256: Annotated[str, Field(alias="inputsSha256", pattern="^[0-9a-f]{64}$")]
    results_sha256: Annotated[
        str, Field(alias="resultsSha256", pattern="^[0-9a-f]{64}$")
    ]


class JudgeResult(Strict):
    groups: list[GroupResult] | None
    usage: Usage | None = None


LossConfig = TypeAliasType(
    "LossConfig",
    Annotated[
        CispoLoss | PpoLoss | GspoLoss | DppoLoss | SapoLoss | ImportanceSamplingLoss,
        Field(discriminator="name"),
    ],
)


class ProductionConfig(Strict):
    run: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    recordings: BlobRef
    conversations: Annotated[int, Field(ge=1, le=9007199254740991)]
    samplers: Annotated[list[RecordedSampler], Field(min_length=1)]
    left_out: Annotated[dict[str, LeftOutAdditionalProperty], Field(alias="leftOut")]


class RolloutInput(Strict):
    run: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    step: Annotated[int, Field(ge=1, le=9007199254740991)]
    group: Annotated[int, Field(ge=0, le=9007199254740991)]
    agent: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    agent_code_sha256: Annotated[
        str, Field(alias="agentCodeSha256", pattern="^[0-9a-f]{64}$")
    ]
    scenarios: BlobRef
    scenario: Annotated[int, Field(ge=0, le=9007199254740991)]
    attempts: Annotated[int, Field(ge=1, le=9007199254740991)]
    seed: Annotated[int, Field(ge=0, le=9007199254740991)]
    policy: Checkpoint
    roles: TrainedRoles | None = None
    seats: Seats | None = None
    rollout: RolloutConfig
    minimum_group_size: Annotated[
        int, Field(alias="minimumGroupSize", ge=2, le=9007199254740991)
    ]
    truncated: Literal["mask", "penalise", "keep"]
    overlong_buffer: Annotated[
        int, Field(alias="overlongBuffer", ge=0, le=9007199254740991)
    ] = 0
    overlong_penalty: Annotated[float, Field(alias="overlongPenalty", gt=0.0)] = 1
    baseline: Literal["group", "rae"] | None = None
    judge: Annotated[
        str | None, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._:@/~+-]{0,199}$")
    ]
    inputs_sha256: Annotated[str, Field(alias="inputsSha256", pattern="^[0-9a-f]{64}$")]


class RunCosts(Strict):
    seconds: Annotated[float, Field(ge=0.0)]
    usage: Usage
    usd: Dollars
    unpriced: list[UnpricedItem]
    max_cost_usd: Annotated[float | None, Field(alias="maxCostUsd", ge=0.0)] = None
    max_hours: Annotated[float | None, Field(alias="maxHours", ge=0.0)] = None


class RunState(Strict):
    run: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    agent: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    base_model: Annotated[
        str,
        Field(
            alias="baseModel",
            max_length=200,
            pattern="^[A-Za-z0-9][A-Za-z0-9._-]*(\\/[A-Za-z0-9][A-Za-z0-9._-]*)*(@[0-9a-f]{40})?$",
        ),
    ]
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    state: Literal["running", "pausing", "paused", "stopping", "completed", "stopped", "cancelled", "failed"]
    step: Annotated[int, Field(ge=0, le=9007199254740991)]
    steps: Annotated[int, Field(ge=1, le=9007199254740991)]
    phase: Literal["prepare", "initialise", "eval", "rollout", "judge", "train", "done"]
    waiting_for: Annotated[str | None, Field(alias="waitingFor")]
    reward: float | None
    eval_before: Annotated[EvalResult | None, Field(alias="evalBefore")]
    eval_after: Annotated[EvalResult | None, Field(alias="evalAfter")]
    evals: list[EvalResult]
    wall_seconds: Annotated[float, Field(alias="wallSeconds")]
    adapter_sha256: Annotated[
        str | None, Field(alias="adapterSha256", pattern="^[0-9a-f]{64}$")
    ]
    failure: str | None
    notes: list[str]
    pause: Pause | None
    changes: list[SettingChange]
    lineage: list[Branch]
    judging: JudgeSpending | None
    overlap: list[OverlapItem] | None = None
    awaited: AwaitedRewards | None = None
    costs: RunCosts | None = None


class StepSummary(Strict):
    step: Annotated[int, Field(ge=1, le=9007199254740991)]
    reward: float | None
    metrics: dict[str, float]
    train: StepMetrics
    learning_rate: Annotated[float, Field(alias="learningRate")]
    groups: Annotated[int, Field(ge=0, le=9007199254740991)]
    replaced_groups: Annotated[
        int, Field(alias="replacedGroups", ge=0, le=9007199254740991)
    ]
    unused: dict[str, UnusedAdditionalProperty]
    failed_attempts: Annotated[
        int, Field(alias="failedAttempts", ge=0, le=9007199254740991)
    ]
    truncated_attempts: Annotated[
        int | None, Field(alias="truncatedAttempts", ge=0, le=9007199254740991)
    ] = None
    attempts: Annotated[int, Field(ge=0, le=9007199254740991)]
    sampled_tokens: Annotated[
        int, Field(alias="sampledTokens", ge=0, le=9007199254740991)
    ]
    seconds: dict[str, float]
    adapter_sha256: Annotated[
        str, Field(alias="adapterSha256", pattern="^[0-9a-f]{64}$")
    ]
    examples: Annotated[int | None, Field(ge=0, le=9007199254740991)] = None
    usage: Usage | None = None
    costs: StepCosts | None = None


class TrainConfig(Strict):
    optimizer: OptimizerConfig
    lora: LoraConfig | None
    passes: Annotated[int, Field(ge=1, le=9007199254740991)] = 1
    mini_batches: Annotated[
        int, Field(alias="miniBatches", ge=1, le=9007199254740991)
    ] = 1
    loss: LossConfig
    reduction: Literal["token", "attempt", "constant"] = "token"
    reduction_tokens: Annotated[
        int | None, Field(alias="reductionTokens", ge=1, le=9007199254740991)
    ] = None
    correction: Literal["none", "token-truncate", "token-mask", "sequence-truncate", "sequence-mask", "geometric", "off-policy-mask"] = (
        "none"
    )
    correction_cap: Annotated[float | None, Field(alias="correctionCap", gt=1.0)] = None
    kl_coefficient: Annotated[float, Field(alias="klCoefficient", ge=0.0)] = 0
    kl_reference: Annotated[BlobRef | None, Field(alias="klReference")] = None
    kl_as: Annotated[Literal["loss", "reward"], Field(alias="klAs")] = "loss"
    kl_estimator: Annotated[Literal["k3", "k3-ratio"], Field(alias="klEstimator")] = (
        "k3-ratio"
    )
    entropy_coefficient: Annotated[float, Field(alias="entropyCoefficient", ge=0.0)] = 0
    advantage_scale: Annotated[
        Literal["none", "group-std", "batch-std"], Field(alias="advantageScale")
    ]
    baseline: Literal["group", "rae"] = "group"
    leave_one_out: Annotated[bool, Field(alias="leaveOneOut")]
    truncated: Literal["mask", "penalise", "keep"]
    overlong_buffer: Annotated[
        int, Field(alias="overlongBuffer", ge=0, le=9007199254740991)
    ] = 0
    overlong_penalty: Annotated[float, Field(alias="overlongPenalty", gt=0.0)] = 1
    max_logprob_mismatch: Annotated[float, Field(alias="maxLogprobMismatch", gt=0.0)]
    micro_batch_tokens: Annotated[
        int, Field(alias="microBatchTokens", ge=1, le=9007199254740991)
    ]
    packing: Literal["rows", "tree"] = "tree"


class TrainInput(Strict):
    run: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    step: Annotated[int, Field(ge=1, le=9007199254740991)]
    base_model: Annotated[
        str,
        Field(
            alias="baseModel",
            max_length=200,
            pattern="^[A-Za-z0-9][A-Za-z0-9._-]*(\\/[A-Za-z0-9][A-Za-z0-9._-]*)*(@[0-9a-f]{40})?$",
        ),
    ]
    parent: Checkpoint
    samplers: Annotated[list[Sampler] | None, Field(min_length=1)] = None
    groups: list[GroupRef]
    learning_rate: Annotated[float, Field(alias="learningRate", ge=0.0)]
    seed: Annotated[int, Field(ge=0, le=9007199254740991)]
    train: TrainConfig
    supervised: SupervisedStep | None = None
    roles: TrainedRoles | None = None
    league: LeagueScores | None = None
    inputs_sha256: Annotated[str, Field(alias="inputsSha256", pattern="^[0-9a-f]{64}$")]


class ConcludeInput(Strict):
    schedule: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    number: Annotated[int, Field(ge=1, le=9007199254740991)]
    state: RunState


class CostLedger(Strict):
    spent: RunCosts
    judging: JudgeSpending
    last_step: Annotated[LastStep, Field(alias="lastStep")]
    since_step: Annotated[SinceStep, Field(alias="sinceStep")]


class JudgeGroupInput(Strict):
    group: RolloutInput


class Rollback(Strict):
    request_id: Annotated[str, Field(alias="requestId", min_length=1)]
    step: Annotated[int, Field(ge=0, le=9007199254740991)]
    costs: CostLedger


class LocateInput(Strict):
    run: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    rollback: Rollback | None


class Located(Strict):
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    step: Annotated[int, Field(ge=0, le=9007199254740991)]
    checkpoint: Checkpoint
    policies: Annotated[list[Checkpoint], Field(min_length=1)]
    start: Checkpoint | None = None
    league: (
        dict[
            Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")],
            list[LeagueOpponent],
        ]
        | None
    ) = None
    dealt: Annotated[int, Field(ge=0, le=9007199254740991)]
    open: list[OpenGroup]
    empty_steps: Annotated[int, Field(alias="emptySteps", ge=0, le=9007199254740991)]
    costs: CostLedger
    lineage: list[Branch]
    evals: list[EvalResult]
    changes: list[SettingChange]
    amendments: Annotated[int, Field(ge=0, le=9007199254740991)]


class Manifest(Strict):
    schema_: Annotated[Literal[1], Field(alias="schema")]
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    step: Annotated[int, Field(ge=0, le=9007199254740991)]
    parent: Parent | None
    inputs_sha256: Annotated[str, Field(alias="inputsSha256", pattern="^[0-9a-f]{64}$")]
    base_model: Annotated[
        str,
        Field(
            alias="baseModel",
            max_length=200,
            pattern="^[A-Za-z0-9][A-Za-z0-9._-]*(\\/[A-Za-z0-9][A-Za-z0-9._-]*)*(@[0-9a-f]{40})?$",
        ),
    ]
    base_model_sha256: Annotated[
        str, Field(alias="baseModelSha256", pattern="^[0-9a-f]{64}$")
    ]
    adapter: BlobRef
    adapter_config: Annotated[BlobRef, Field(alias="adapterConfig")]
    optimizer: BlobRef
    groups: list[GroupRef]
    learning_rate: Annotated[float, Field(alias="learningRate", ge=0.0)]
    metrics: StepMetrics
    platform: dict[str, str | Platform]
    seed: Annotated[int, Field(ge=0, le=9007199254740991)]
    train: TrainConfig | None
    samplers: Annotated[list[Sampler] | None, Field(min_length=1)] = None
    supervised: SupervisedStep | None = None
    policies: (
        dict[
            Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")],
            PolicyFiles,
        ]
        | None
    ) = None
    roles: TrainedRoles | None = None
    baselines: (
        dict[
            Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")],
            float,
        ]
        | None
    ) = None
    league: LeagueScores | None = None
    full_fine_tuning: Annotated[Literal[True] | None, Field(alias="fullFineTuning")] = (
        None
    )


class Position(Strict):
    branch: Annotated[int, Field(ge=0, le=9007199254740991)]
    step: Annotated[int, Field(ge=0, le=9007199254740991)]
    checkpoint: Checkpoint
    policies: Annotated[list[Checkpoint], Field(min_length=1)]
    start: Checkpoint | None = None
    league: (
        dict[
            Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")],
            list[LeagueOpponent],
        ]
        | None
    ) = None
    dealt: Annotated[int, Field(ge=0, le=9007199254740991)]
    open: list[OpenGroup]
    empty_steps: Annotated[int, Field(alias="emptySteps", ge=0, le=9007199254740991)]
    costs: CostLedger


class PromoteInput(Strict):
    schedule: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    number: Annotated[int, Field(ge=1, le=9007199254740991)]
    state: RunState
    served: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    checkpoint: Checkpoint


class RecomputeInput(Strict):
    settings: GpuWorkerSettings
    work: TrainInput | InitialiseInput


class RecordInput(Strict):
    state: RunState


class RunConfig(Strict):
    run: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    agent: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    base_model: Annotated[
        str,
        Field(
            alias="baseModel",
            max_length=200,
            pattern="^[A-Za-z0-9][A-Za-z0-9._-]*(\\/[A-Za-z0-9][A-Za-z0-9._-]*)*(@[0-9a-f]{40})?$",
        ),
    ]
    seed: Annotated[int, Field(ge=0, le=9007199254740991)]
    steps: Annotated[int, Field(ge=1, le=9007199254740991)]
    groups_per_step: Annotated[
        int, Field(alias="groupsPerStep", ge=1, le=9007199254740991)
    ]
    group_size: Annotated[int, Field(alias="groupSize", ge=2, le=9007199254740991)]
    minimum_group_size: Annotated[
        int, Field(alias="minimumGroupSize", ge=2, le=9007199254740991)
    ]
    replacement_rounds: Annotated[
        int, Field(alias="replacementRounds", ge=0, le=9007199254740991)
    ]
    max_scenarios: Annotated[
        int, Field(alias="maxScenarios", ge=1, le=9007199254740991)
    ]
    eval_scenarios: Annotated[
        int, Field(alias="evalScenarios", ge=1, le=9007199254740991)
    ]
    eval_every: Annotated[int, Field(alias="evalEvery", ge=0, le=9007199254740991)]
    learning_rate: Annotated[float, Field(alias="learningRate", ge=0.0)]
    learning_rate_schedule: Annotated[
        Literal["constant", "linear", "cosine"], Field(alias="learningRateSchedule")
    ]
    final_learning_rate_share: Annotated[
        float, Field(alias="finalLearningRateShare", ge=0.0, le=1.0)
    ]
    learning_rate_restarts: Annotated[
        int, Field(alias="learningRateRestarts", ge=0, le=9007199254740991)
    ] = 0
    warmup_steps: Annotated[int, Field(alias="warmupSteps", ge=0, le=9007199254740991)]
    train: TrainConfig
    rollout: RolloutConfig
    judge: Annotated[
        str | None, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._:@/~+-]{0,199}$")
    ]
    gpu_usd_per_hour: Annotated[float | None, Field(alias="gpuUsdPerHour", ge=0.0)] = (
        None
    )
    max_cost_usd: Annotated[float | None, Field(alias="maxCostUsd", ge=0.0)] = None
    max_hours: Annotated[float | None, Field(alias="maxHours", ge=0.0)] = None
    max_staleness: Annotated[int, Field(alias="maxStaleness", ge=0, le=16)] = 0
    groups_ahead: Annotated[
        int, Field(alias="groupsAhead", ge=0, le=9007199254740991)
    ] = 0
    max_reward_staleness: Annotated[
        int, Field(alias="maxRewardStaleness", ge=1, le=16)
    ] = 4
    keep_all: Annotated[bool, Field(alias="keepAll")] = False
    continue_as_new_every: Annotated[
        int | None, Field(alias="continueAsNewEvery", ge=1, le=9007199254740991)
    ]
    parent: Checkpoint | None
    start_adapter: Annotated[StartAdapter | None, Field(alias="startAdapter")] = None
    roles: (
        dict[
            Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")],
            Role,
        ]
        | None
    ) = None
    competing: Literal[True] | None = None
    external: ExternalConfig | None = None
    supervised: SupervisedConfig | None = None
    production: ProductionConfig | None = None


class AllocateInput(Strict):
    schedule: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]{0,62}$")]
    firing: Annotated[str, Field(min_length=1)]
    config: RunConfig
    from_: Annotated[Checkpoint | None, Field(alias="from")]
    production: ProductionSource | None = None


class Allocated(Strict):
    number: Annotated[int, Field(ge=1, le=9007199254740991)]
    config: RunConfig
    concluded: Checkpoint | None
    too_few: Annotated[str | None, Field(alias="tooFew")] = None


class CheckpointInput(Strict):
    state: RunState
    summary: StepSummary
    position: Position


class PrepareInput(Strict):
    config: RunConfig


# From core/contract/wire-constants.ts.
BODY_TOO_LARGE = "too_large"
BRANCH_POLICY_NAME = "{run}~{branch}@{step}"
BUILT_IN_MODELS = ("pocket", "pocket-tools")
CALL_HEADER = "x-temper-call"
CONTACT_MS = 2000
CONTEXT_TOO_LONG = "context_length_exceeded"
DEADLINE_HEADER = "x-temper-deadline-ms"
DEFAULT_KV_CACHE_BYTES = 4294967296
DEFAULT_SLOTS = 128
DEFAULT_THREADS = 2
DEVICE_PATTERN = "^(auto|cpu|cuda(:[0-9]+)?)$"
DEVICE_RULE = "auto, cpu, cuda or cuda:N"
DTYPES = ("auto", "float32", "bfloat16")
ENGINES = ("embedded", "vllm")
ENGINE_KEY_VARIABLE = "TEMPER_ENGINE_KEY"
GPU_QUEUE = "gpu"
HUB_PREFIX = "hub:"
INTERNAL_ERROR = "internal"
KEPT_PAUSES = 32
KEPT_UNNAMED_MS = 86400000
LEAST_KV_CACHE_BYTES = 1048576
LEAST_SLOTS = 16
MAIN_POLICY = "main"
MAX_ANSWER_BYTES = 268435456
MAX_BODY_BYTES = 16777216
MAX_CHAT_TEMPLATE_BYTES = 100000
MAX_DEPTH = 100
MAX_ROLLOUT_BYTES = 268435456
METRICS_KEY_VARIABLE = "TEMPER_METRICS_KEY"
MOST_DEVICES = 64
MOST_SLOTS = 2048
MOST_THREADS = 1024
MOST_VLLM_POLICIES = 1024
NAME_PATTERN = "^[a-z0-9][a-z0-9._-]{0,62}$"
PAUSE_CHECK_MS = 500
POLICY_NAME = "{run}@{step}"
POLICY_NAME_PATTERN = "^([a-z0-9][a-z0-9._-]{0,62})(?:~([1-9][0-9]*))?@(0|[1-9][0-9]*)(?::([a-z0-9][a-z0-9_-]{0,31}))?$"
POLICY_SUFFIX = ":{policy}"
RAE_DECAY = 0.95
RECORD_SCHEMA = 1
RESUME_GRACE_MS = 1000
ROLE_NAME_PATTERN = "^[a-z0-9][a-z0-9_-]{0,31}$"
S3_NAMED = "s3/"
S3_REFUSALS = {"301": ("never", "the bucket is in another region; correct AWS_REGION"), "401": ("once-answered", "the credentials are wrong or lack a permission; correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"), "403": ("once-answered", "the credentials are wrong or lack a permission (s3:ListBucket, too); correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"), "408": ("always", "the server took too long to answer; check the server and the network"), "409": ("always", "another request changes this object at this moment"), "429": ("always", "the server limits the request rate; start fewer workers"), "NoSuchBucket": ("never", "there is no such bucket; create it, or correct the name"), "InvalidBucketName": ("never", "this is not a valid bucket name; correct it"), "PermanentRedirect": ("never", "the bucket is in another region; correct AWS_REGION"), "AuthorizationHeaderMalformed": ("never", "the bucket is in another region; correct AWS_REGION"), "IllegalLocationConstraintException": ("never", "the bucket is in another region; correct AWS_REGION"), "MissingRegion": ("never", "no region is configured; set AWS_REGION (us-east-1 for most self-hosted servers)"), "NotImplemented": ("never", "the server must support conditional writes (If-None-Match: *); use one that does"), "NotFound": ("never", "the server at that address does not speak S3; correct AWS_ENDPOINT_URL"), "ERR_INVALID_URL": ("never", "the endpoint is not a URL; correct AWS_ENDPOINT_URL"), "InvalidAccessKeyId": ("once-answered", "the server does not know the access key; correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"), "XAdminUserNotFound": ("once-answered", "the server does not know the access key; correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"), "InvalidToken": ("once-answered", "the server does not know the access key; correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"), "SignatureDoesNotMatch": ("once-answered", "the secret key does not belong to the access key; correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"), "AccessDenied": ("once-answered", "these credentials lack a permission; allow s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket"), "AllAccessDisabled": ("once-answered", "these credentials lack a permission; allow s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket"), "CredentialsProviderError": ("once-answered", "keys must be in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in a profile named by AWS_PROFILE; set them"), "RequestTimeTooSkewed": ("once-answered", "the clocks of this host and of the server differ; synchronize them"), "ExpiredToken": ("always", "the credentials (AWS_SESSION_TOKEN, or those of the profile) have expired; renew them"), "TokenRefreshRequired": ("always", "the credentials (AWS_SESSION_TOKEN, or those of the profile) have expired; renew them"), "RequestTimeout": ("always", "the server took too long to answer; check the server and the network"), "TimeoutError": ("always", "the server took too long to answer; check the server and the network"), "SlowDown": ("always", "the server limits the request rate; start fewer workers"), "ECONNREFUSED": ("always", "nothing listens at that address; start the server, or correct AWS_ENDPOINT_URL"), "ENOTFOUND": ("always", "the host is unknown; correct AWS_ENDPOINT_URL, or check the network"), "ECONNRESET": ("always", "the connection broke; check the server and the network")}
S3_SCHEME = "s3://"
STANDING_BY = "standing by"
STORE_ID_PATTERN = "^[A-Za-z0-9-]{1,64}$"
STORE_KEY = "store.json"
STORE_KEYS = {"blob": "blobs/{sha256}", "vocabulary": "runs/{run}/vocabulary.json", "view": "runs/{run}/branches/{branch}/checkpoints/{step}", "step": "runs/{run}/branches/{branch}/steps/{step}", "manifest": "runs/{run}/branches/{branch}/steps/{step}/manifest.json", "manifestTimes": "runs/{run}/branches/{branch}/steps/{step}/manifest.times.json", "pruned": "runs/{run}/branches/{branch}/steps/{step}/pruned.json", "tokens": "runs/{run}/branches/{branch}/steps/{step}/tokens.safetensors", "verdict": "runs/{run}/branches/{branch}/steps/{step}/verdict.json", "group": "runs/{run}/branches/{branch}/steps/{step}/groups/{group}", "rollouts": "runs/{run}/branches/{branch}/steps/{step}/groups/{group}.rollouts.jsonl.gz", "judged": "runs/{run}/branches/{branch}/steps/{step}/groups/{group}.judged.json"}
TOKEN_TRACE_METADATA = "temper"
VLLM_KEY_VARIABLE = "TEMPER_VLLM_KEY"
VLLM_LORA_RANK = 64
VLLM_POLICIES = 2

# From core/contract/failures.ts.
FailureType = Literal["AgentFailed", "JudgeFailed", "EngineFailed", "ProgramFailed", "ResourceFailed", "TrainerFailed", "OutOfMemory", "StoreCorrupt", "StoreUnavailable", "SourceUnavailable", "TargetUnavailable", "DeploymentFailed", "BadConfig", "PolicyMismatch", "StepConflict", "LossNotFinite", "StaleAttempt", "LaterVersion"]
RETRYABLE: frozenset[FailureType] = frozenset(("JudgeFailed", "EngineFailed", "ProgramFailed", "ResourceFailed", "TrainerFailed", "StoreUnavailable", "SourceUnavailable", "TargetUnavailable", "StaleAttempt", "LaterVersion"))
