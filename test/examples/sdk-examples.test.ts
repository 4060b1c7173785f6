/** Install lines on the pages of the examples on other SDKs. test/installation plays them, where the SDKs are. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { blocksOf, readPage } from '../docs/markdown.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const { dependencies: tried } = JSON.parse(read('test/installation/project/package.json')) as {
  dependencies: Readonly<Record<string, string>>;
};

test.each(['ai-sdk', 'langgraph', 'anthropic-sdk'])(
  '%s: its page installs what the agent imports, in the major versions that are tried',
  (example) => {
    const folder = new URL(`../../examples/${example}/`, import.meta.url);
    const sources = readdirSync(folder).flatMap((name) =>
      name.endsWith('.ts') ? [read(`examples/${example}/${name}`)] : [],
    );
    const imported = [...sources.join('\n').matchAll(/ from '((?:@[\w-]+\/)?[\w-]+)/g)].flatMap(([, name = '']) =>
      name === 'temper-rl' || name === 'zod' ? [] : [name],
    );
    const packages = [...new Set(imported)].map((name) => `${name}@${/^\d+/.exec(tried[name] ?? '')?.[0]}`);
    const page = `examples/${example}/README.md`;
    const [line = ''] = blocksOf(page).flatMap(({ code }) => code.match(/^npm install .*$/m) ?? []);
    const [, told = ''] = /^npm install --no-save --prefix examples\/[\w-]+ (.*)$/.exec(line) ?? [];
    expect(line).toContain(` examples/${example} `);
    expect(told.split(' ').toSorted()).toEqual(packages.toSorted());
    expect(readPage(page)).toContain(`\`npm install ${told}\``);
  },
);
