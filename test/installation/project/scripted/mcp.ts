/** The tools of an MCP server in the forms that docs/mcp.md makes of them for each SDK: called, answered, journaled. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { Agent, OpenAIResponsesModel, run, setTracingDisabled } from '@openai/agents';
import { generateText, stepCountIs, type ToolSet } from 'ai';
import { defineAgent, type RolloutContext } from 'temper-rl';
import { mcp, type McpTool } from 'temper-rl/mcp';
import { playAgent, type AnswerFunction } from 'temper-rl/testing';

setTracingDisabled(true);

const program = new URL('../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url);
const server = mcp({ command: process.execPath, args: [decodeURIComponent(program.pathname)], only: ['get-sum'] });
const QUESTION = 'What is 2 + 3?';
const SUM = 'The sum of 2 and 3 is 5.';

/** The page's form of the tools, by the name of the constant. */
async function made(name: string, tools: readonly McpTool[]): Promise<never> {
  const file = new URL(`../mcp/${name}.js`, import.meta.url).href;
  const module = (await import(file)) as Record<string, (tools: readonly McpTool[]) => unknown>;
  return module[name]!(tools) as never;
}

const ROLLOUTS: Readonly<Record<string, (context: RolloutContext, tools: McpTool[]) => Promise<string>>> = {
  async forAiSdk({ baseURL, apiKey, fetch, model }, tools) {
    const policy = createOpenAICompatible({ name: 'temper', baseURL, apiKey, fetch })(model);
    const toolSet: ToolSet = await made('forAiSdk', tools);
    const asked = { model: policy, prompt: QUESTION, tools: toolSet, maxRetries: 0 };
    return (await generateText({ ...asked, stopWhen: stepCountIs(3) })).text;
  },
  async forLangChain({ baseURL, apiKey, fetch, model }, tools) {
    const llm = new ChatOpenAI({ model, apiKey, configuration: { baseURL, fetch }, maxRetries: 0 });
    const graph = createReactAgent({ llm, tools: await made('forLangChain', tools) });
    const { messages } = await graph.invoke({ messages: [{ role: 'user', content: QUESTION }] });
    return String(messages.at(-1)?.content);
  },
  async forAgents({ openai, model }, tools) {
    const policy = new OpenAIResponsesModel(openai as never, model);
    const agent = new Agent({ name: 'adder', model: policy, tools: await made('forAgents', tools) });
    return String((await run(agent, QUESTION)).finalOutput);
  },
  async forRunTools({ openai, model }, tools) {
    const messages = [{ role: 'user' as const, content: QUESTION }];
    const runner = openai.chat.completions.runTools({ model, messages, tools: await made('forRunTools', tools) });
    return String(await runner.finalContent());
  },
  async forMessages({ baseURL, apiKey, fetch, model }, tools) {
    const client = new Anthropic({ baseURL: baseURL.replace('/v1', ''), apiKey, fetch, maxRetries: 0 });
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: QUESTION }];
    for (;;) {
      const given = { model, messages, max_tokens: 64, tools: await made('forMessages', tools) };
      const { content } = await client.messages.create(given);
      const block = content.find(({ type }) => type === 'tool_use') as Anthropic.ToolUseBlock | undefined;
      if (block === undefined) return content.map((each) => (each.type === 'text' ? each.text : '')).join('');
      const result = await tools.find(({ name }) => name === block.name)!.text(block.input);
      messages.push({ role: 'assistant', content });
      messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: block.id, content: result }] });
    }
  },
};

/** A call, and what came back as the answer. OpenAI's Agents SDK has another name for the tool. */
const answer: AnswerFunction = ({ messages, tools }) => {
  const last = messages.at(-1)!;
  if (last.role === 'tool') return String(last.content);
  const [tool] = tools as { function: { name: string } }[];
  return { toolCalls: [{ name: tool!.function.name, arguments: { a: 2, b: 3 } }] };
};

for (const [name, rollout] of Object.entries(ROLLOUTS)) {
  test(`MCP tools ${name}: a call goes to the server, and its result to the model`, async () => {
    const agent = defineAgent({
      name: 'sums',
      scenarios: [],
      async rollout(context) {
        const tools = await server.tools(context);
        assert.equal(await rollout(context, tools), SUM);
        return 1;
      },
    });
    const { error, reward, calls } = await playAgent(agent, { scenario: { id: 'sum' }, answers: answer });
    assert.equal(error, undefined);
    assert.equal(reward, 1);
    assert.equal(calls.length, 2);
  });
}
