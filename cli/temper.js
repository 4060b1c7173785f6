#!/usr/bin/env node
// Node 20 cannot load TypeScript: tsx is registered first, then the command line is imported as it is written.
await import('../workers/typescript.js');
const { main } = await import('./main.ts');
process.exitCode = await main(process.argv.slice(2));
// A library that left a handle open must not keep a finished command alive.
setTimeout(() => process.exit(), 2000).unref();
