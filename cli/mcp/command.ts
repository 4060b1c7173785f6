import { defineCommand, type CommandContext } from '../command-line/command.ts';

export const mcpCommand = defineCommand({
  name: 'mcp',
  group: 'Look',
  summary: 'let a coding agent look at runs, or act on them: an MCP server on stdin and stdout',
  details: [
    'Tools list runs, curves, steps, groups, attempts and tokens, and search attempts, as temper ui shows them. They read',
    'the store, need no Temporal server, and change nothing. With --allow-actions, tools also steer runs, as commands do.',
    'Needs npm install @modelcontextprotocol/sdk.',
    'Configure it in your agent as a command: npx temper mcp, in the folder of the project.',
  ],
  examples: ['temper mcp', 'temper mcp --store s3://my-bucket/temper'],
  arguments: {},
  flags: {
    store: {
      kind: 'text',
      placeholder: 'URI',
      description: 'folder or s3://BUCKET/PREFIX to look at; needs no project',
      default: "the project's",
    },
    'allow-actions': { kind: 'boolean', description: 'also offer tools that change something, such as stop' },
  },
  run: async (context): Promise<number> => (await import('./mcp.ts')).serveMcp(context),
});

export type McpCommandContext = CommandContext<typeof mcpCommand>;
