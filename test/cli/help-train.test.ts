/** Help of the commands with the most flags. */
import { expect, test } from 'vitest';
import { helpOf } from '../../cli/command-line/help.ts';
import { COMMANDS } from '../../cli/commands.ts';

const help = (name: string) => helpOf(COMMANDS.find((command) => command.name === name)!);

test('train', () => {
  expect(help('train')).toMatchInlineSnapshot(`
    "start a training run or continue it, and show its progress

    Usage: temper train [AGENT] --base-model MODEL | --from-production RUN [flags]

    AGENT is a file whose default export is defineAgent({ … }), or a folder with an agent.ts; by default the working
    folder. Flags that train of temporal.config.ts sets need not be passed. If a run of this name exists, it continues;
    if that run is complete, you see its result. Ctrl-C stops watching (exit code 130): run the same command to continue.

    Options:
      --run NAME                                name of the run [the agent's name]
      --adapter FOLDER                          PEFT adapter to begin with: its base model, rank, alpha and modules are the run’s
      --base-model MODEL                        pocket, pocket-tools, a folder, a name of the Hugging Face hub, or s3://BUCKET/PREFIX (also --model)
      --seed N                                  seed of all random choices [1]
      --steps N                                 optimizer steps [100]
      --groups-per-step N                       scenarios per step [8]
      --group-size N                            attempts per scenario [8]
      --minimum-group-size N                    minimum of successful attempts for a group to be trained [2]
      --replacement-rounds N                    how often a step replaces groups with identical rewards by new scenarios [1]
      --max-scenarios N                         maximum number of training scenarios [10000]
      --eval-scenarios N                        maximum number of held-out scenarios [200]
      --eval-every N                            also evaluate every N steps; 0: only before and after training [0]
      --learning-rate X                         learning rate of AdamW [5e-5; 5e-6 with --full-fine-tuning]
      --learning-rate-schedule NAME             constant, linear or cosine [constant]
      --final-learning-rate-share X             final learning rate, as a share of the initial one [1 if constant, else 0.1]
      --learning-rate-restarts N                with the schedule cosine: how often it starts again at the full rate; 0: never [0]
      --warmup-steps N                          steps of linear warm-up [0]
      --weight-decay X                          weight decay of AdamW [0]
      --max-grad-norm X                         gradient norm above which the gradient is clipped [1]
      --optimizer NAME                          adamw, or adamw_8bit, which keeps its moments in 8 bits, for less memory [adamw]
      --beta1 X                                 decay of AdamW's first moment [0.9]
      --beta2 X                                 decay of AdamW's second moment [0.99]
      --adam-epsilon X                          epsilon of AdamW [1e-8]
      --[no-]full-fine-tuning                   train all weights of the base model instead of a LoRA adapter; not with vLLM
      --lora-rank N                             rank of the adapter [16]
      --lora-alpha X                            scale of the adapter: alpha / rank [32]
      --lora-target-modules A,B                 comma-separated module names [every linear layer except the output head]
      --lora-layers N-M,N                       numbers of the layers to adapt, from 0 [all]
      --[no-]lora-rslora                        scale the adapter by alpha / √rank (rsLoRA)
      --[no-]lora-dora                          also train the lengths of the matrices' rows (DoRA); not with vLLM
      --lora-dropout X                          share of the adapter's inputs to drop in training [0]
      --passes N                                how often a step trains its groups [1]
      --mini-batches N                          optimizer updates per pass, each on a part of the groups [1]
      --loss NAME                               cispo; with --passes or --mini-batches above 1, or --max-staleness above 0, also ppo, gspo, dppo, sapo, importance_sampling [cispo]
      --epsilon-low X                           lower end of the range that the ratio is clipped to, as a distance from 1 [the loss's own]
      --epsilon-high X                          upper end of that range, as a distance from 1 [the loss's own]
      --dual-clip X                             ppo's bound for negative advantages, or none [3 for ppo]
      --max-shift X                             how far dppo lets a token's probability move [0.2 for dppo]
      --log-ratio-penalty X                     factor of dppo's squared log ratio [0.001 for dppo]
      --tau-positive X                          how fast the gradient of sapo fades, for positive advantages [1 for sapo]
      --tau-negative X                          the same for negative advantages [1.05 for sapo]
      --reduction NAME                          what counts the same in the loss: token, attempt or constant [token]
      --reduction-tokens N                      tokens that an attempt counts as, with --reduction constant, which requires it
      --correction NAME                         for a sampler that differs from the trainer: token-truncate, token-mask, sequence-truncate, sequence-mask, geometric, off-policy-mask or none [none]
      --correction-cap X                        largest ratio of trainer to sampler that --correction accepts [2; 1.01 for geometric, 1.65 for off-policy-mask]
      --kl-coefficient X                        what a divergence from the base model, or from --kl-reference, costs [0]
      --kl-reference CHECKPOINT                 checkpoint that --kl-coefficient keeps the policy near [the base model]
      --kl-as NAME                              where --kl-coefficient is charged: loss or reward [loss]
      --kl-estimator NAME                       what stands for the divergence in the loss: k3-ratio, or k3 as in GRPO [k3-ratio]
      --entropy-coefficient X                   what a nat of entropy is worth in the loss [0]
      --advantage-scale NAME                    none, group-std or batch-std [none]
      --advantage-baseline NAME                 what a reward is compared with: group, the mean of its group, or rae, the running mean of its role [group; rae for an agent whose roles compete]
      --[no-]leave-one-out                      baseline of an attempt is the mean of the others in its group
      --truncated NAME                          attempts cut off by a token limit: mask, penalise or keep [mask]
      --overlong-buffer N                       tokens before a call's limit in which its answer costs reward, more with each; 0: none [0]
      --overlong-penalty X                      what an answer at its limit costs, with --overlong-buffer [1]
      --max-logprob-mismatch X                  maximum difference between sampler and trainer (mean k3); above it, or ten times it below float32, the step fails [0.001]
      --micro-batch-tokens N                    tokens per micro-batch; more is faster and needs more memory [16384]
      --packing NAME                            tree computes a token that several rows begin with once; rows computes each row alone [tree]
      --temperature X                           sampling temperature in training and evaluation [1]
      --max-tokens N                            token limit of a call that sets none [512]
      --chat-template FILE                      Jinja chat template [the model's own]
      --chat-template-kwargs JSON               variables of the chat template, for calls that set none
      --max-calls-per-attempt N                 maximum number of calls per attempt; more fail the attempt [64]
      --attempt-timeout-ms N                    time limit of an attempt; waiting for an unavailable engine does not count [600000]
      --call-timeout-ms N                       time limit of one call [120000]
      --call-retry-budget-ms N                  how long a call is retried while the engine is unavailable [300000]
      --judge NAME                              judge: provider/model or engine/… [the agent's]
      --max-judge-usd X                         budget of the judge for the whole run; the run pauses before exceeding it [the agent's limit]
      --gpu-usd-per-hour X                      price of the hardware in US dollars per hour of work
      --max-cost-usd X                          budget for hardware, judge and hosted models; the run pauses before exceeding it
      --max-hours X                             budget of working time, without pauses; the run pauses before exceeding it
      --max-staleness N                         play up to N steps ahead of training, sampled from checkpoints that many steps older [0]
      --groups-ahead N                          while groups wait for rewards from people or other systems, play up to N further groups [0]
      --max-reward-staleness N                  with --groups-ahead: leave out groups whose policy is more than N optimizer steps old [4]
      --continue-as-new-every N                 steps after which the workflow continues as new, with a fresh history [when Temporal suggests it]
      --warm-start FILE                         JSON lines of chats that the first steps train before the agent is played
      --warm-start-steps N                      how many of --steps train them [one pass over the file]
      --warm-start-examples-per-step N          examples per step [16]
      --warm-start-turns WHICH                  assistant messages to train: all or last [all]
      --warm-start-max-example-tokens N         token limit of an example [the model's context window]
      --warm-start-overlong NAME                examples above the limit: mask leaves them out, truncate cuts them, refuse ends the run [mask]
      --warm-start-held-out-examples N          examples that are held out and scored [a tenth, at most 200]
      --warm-start-learning-rate X              learning rate of these steps [--learning-rate]
      --warm-start-learning-rate-schedule NAME  constant, linear or cosine, down to a tenth at the last of these steps [constant]
      --from-production RUN                     train conversations that temper serve RUN --record kept and that have feedback, instead of playing the agent
      --at-least N                              with --from-production: fewest such conversations; with fewer, nothing is trained [1]
      --epochs N                                with --from-production: how often each conversation is trained [1]
      --max-policy-age N                        with --from-production: most optimizer steps between the policy that answered and the one that trains [32]
      --from CHECKPOINT                         with --from-production: checkpoint that the run starts from [the one that serves RUN]
      --track NAME                              tracker to tell: wandb, mlflow, trackio, csv, or a name of track in temporal.config.ts; repeatable [those of track in temporal.config.ts; none switches them off]
      --trace NAME                              where to send attempts as traces: otlp, langfuse, weave, mlflow-traces, or a name of trace; repeatable [those of trace in temporal.config.ts; none switches them off]
      --engine NAME                             what samples: embedded or vllm [vllm on a GPU with vLLM installed, else embedded]
      --device NAME                             where the local stack computes: auto, cpu, cuda or cuda:N [auto: a GPU if there is one]
      --dtype NAME                              type of the base model: auto, float32 or bfloat16 [auto: bfloat16 on a GPU, else float32]
      --load-in-4bit                            load the linear layers of the base model in 4 bits per weight (NF4); not with vLLM
      --devices N                               how many devices train: GPUs, or processes on the CPU [1]
      --shard-base-model                        each of several --devices holds a part of the base model, which need not fit into one of them
      -h, --help                                print this help

    Examples:
      temper train examples/tic-tac-toe/agent.ts --base-model pocket --steps 100
      temper train agent.ts --base-model Qwen/Qwen3-4B --steps 200 --group-size 8
      temper train agent.ts --base-model Qwen/Qwen3-4B --steps 220 --warm-start chats.jsonl --warm-start-steps 20
      temper train agent.ts --from-production demo --at-least 200 --run demo-2"
  `);
});

test('distill', () => {
  expect(help('distill')).toMatchInlineSnapshot(`
    "write the best attempts as a file of chats for temper sft

    Usage: temper distill [CHECKPOINT] --out FILE [flags]

    CHECKPOINT is RUN for all attempts that the run trained on or left out, or RUN@STEP, RUN@latest or RUN@best for those
    that this checkpoint played. With roles, those of the policy main are taken, or those of RUN:POLICY.
    --attempts takes those that temper try --save wrote in place of a run, of a hosted model, say. Failed and truncated
    attempts and held-out scenarios are never taken. Needs no server.

    --from-otlp and --from-langfuse take conversations that an application has recorded as traces, and say how many calls
    of models they leave out, and why. --scenarios writes how each began, for an agent to play. Without --top all are taken,
    with it those with a score. Keys of Langfuse are in LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY.

    Options:
      --top P%           share of the attempts to take, by reward; required but for traces
      --attempts FOLDER  take attempts that temper try --save wrote there
      --from-otlp FILE   take traces from a file of OTLP, JSON or protobuf
      --from-langfuse    take traces from Langfuse
      --since TIME       of Langfuse, those from this time on [all]
      --most N           newest calls to take from Langfuse [10000]
      --score NAME       score that ranks traces [reward]
      --scenarios FILE   write how each trace began as scenarios
      --out FILE         output file
      -h, --help         print this help

    Examples:
      temper distill demo --top 25% --out best.jsonl
      temper distill demo@40 --top 10% --out best.jsonl
      temper distill --attempts teacher --top 50% --out best.jsonl
      temper distill --from-otlp traces.jsonl --out chats.jsonl --scenarios scenarios.jsonl
      temper distill --from-langfuse --since 2026-11-20 --score helpful --top 25% --out best.jsonl"
  `);
});

test('sft has a default of its own for --steps, and those of a run for the rest', () => {
  expect(help('sft')).toMatch(/--steps N +optimizer steps \[as --epochs says\]\n/);
  expect(help('sft')).toMatch(/--lora-rank N +rank of the adapter \[16\]\n/);
});
