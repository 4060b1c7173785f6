#!/usr/bin/env node
import { existsSync } from 'node:fs';

// The sources of a clone are TypeScript, which Node 20 cannot load without tsx. An installed package is compiled.
const isSource = existsSync(new URL('main.ts', import.meta.url));
if (isSource) await import('../workers/typescript.js');
const { main } = await import(isSource ? './main.ts' : './main.js');
process.exitCode = await main(process.argv.slice(2));
// A library that left a handle open must not keep a finished command alive.
setTimeout(() => process.exit(), 2000).unref();
