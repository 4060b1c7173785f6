/** `npm run build`: the npm package in dist/. Its folders are those of the sources, with JavaScript in place of TypeScript. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { BUNDLE_NAMES, bundlePage } from './browser/bundle.ts';

interface Manifest {
  exports: Record<string, string>;
  [field: string]: unknown;
}

const root = fileURLToPath(new URL('.', import.meta.url));
const dist = join(root, 'dist');

/** What is no TypeScript and belongs to the package: programs, the GPU worker with its locks. */
const COPIED = [
  'README.md',
  'CHANGELOG.md',
  'LICENSE',
  'docs/glossary.md',
  'cli/temper.js',
  'cli/init/templates',
  'workers/typescript.js',
  'workers/install/temporal-server',
  'gpu-worker/temper_gpu',
  ...readdirSync(join(root, 'gpu-worker'))
    .filter((name) => /^(requirements(?!-dev).*\.lock|torch.*)$/.test(name))
    .map((name) => `gpu-worker/${name}`),
];

rmSync(dist, { recursive: true, force: true });
compile();
dropHiddenDeclarations();
for (const path of COPIED) copy(path);
await bundleWorkflows();
await bundlePages();
writeManifest();

/** Editors show the comments of declarations. Those of the JavaScript would be a fortieth of what is downloaded. */
function compile(): void {
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');
  const line = [tsc, '--project', join(root, 'tsconfig.build.json')];
  for (const emitted of [
    ['--removeComments', '--noCheck'],
    ['--declaration', '--emitDeclarationOnly'],
  ]) {
    execFileSync(process.execPath, [...line, ...emitted], { stdio: 'inherit' });
  }
}

/** Nobody can import what no entry leads to: its types would only be carried. */
function dropHiddenDeclarations(): void {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
  const entries = Object.values(exports).filter((file) => file.endsWith('.ts'));
  const reached = new Set(entries.map((file) => declarationOf(join(dist, file))));
  for (const file of reached) {
    const imports = readFileSync(file, 'utf8').matchAll(/(?:from |import\()["'](\.[^"']+)["']/g);
    for (const [, path] of imports) reached.add(declarationOf(join(dirname(file), path!)));
  }
  const all = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.d.ts'));
  for (const file of all) if (!reached.has(join(dist, file))) rmSync(join(dist, file));
}

function declarationOf(file: string): string {
  return file.replace(/\.[jt]s$/, '.d.ts');
}

function copy(path: string): void {
  mkdirSync(dirname(join(dist, path)), { recursive: true });
  cpSync(join(root, path), join(dist, path), { recursive: true, filter: (file) => basename(file) !== '__pycache__' });
}

/** Webpack does not read TypeScript below node_modules, and takes seconds: an installation has the bundle. */
async function bundleWorkflows(): Promise<void> {
  const workflowsPath = join(dist, 'workflows', 'index.js');
  const { code } = await bundleWorkflowCode({
    workflowsPath,
    logger: new DefaultLogger('WARN'),
    // Temporal needs a map in the bundle. It leads to lines: their columns were a tenth of all that is downloaded.
    webpackConfigHook: (config) => ({
      ...config,
      devtool: 'inline-nosources-cheap-module-source-map',
      module: { ...config.module, rules: [...(config.module?.rules ?? []), dropComments()] },
    }),
  });
  writeFileSync(join(dist, 'workflows', 'bundle.js'), withPackagePaths(code));
}

/** Comments of packages would be a third of the bundle; those of protobufjs tell webpack what to ignore. */
function dropComments() {
  const loader = createRequire(import.meta.resolve('@temporalio/worker')).resolve('swc-loader');
  const jsc = { target: 'es2022', minify: { compress: false, mangle: false, format: { comments: false } } };
  return {
    test: /\.js$/,
    exclude: /protobufjs/,
    use: { loader, options: { sourceMaps: true, isModule: 'unknown', jsc } },
  };
}

/** A frame of a workflow names a file of the package, or of `node_modules`, not of the machine that made the package. */
function withPackagePaths(code: string): string {
  return code.replace(/(?<=^\/\/# sourceMappingURL=data:\S+;base64,)\S+$/m, (encoded) => {
    const map = JSON.parse(Buffer.from(encoded, 'base64').toString()) as { sources: string[] };
    map.sources = map.sources.map((source) => source.replaceAll(join(dist, '/'), '').replaceAll(root, ''));
    return Buffer.from(JSON.stringify(map)).toString('base64');
  });
}

/** Pages have their packages in them: an installation needs neither these nor esbuild. */
async function bundlePages(): Promise<void> {
  mkdirSync(join(dist, 'browser'));
  const packages = new Set<string>();
  for (const name of BUNDLE_NAMES) {
    const { js, css, packages: used } = await bundlePage(name);
    writeFileSync(join(dist, 'browser', `${name}.js`), js);
    writeFileSync(join(dist, 'browser', `${name}.css`), css);
    for (const folder of used) packages.add(join(root, 'browser', folder));
  }
  writeFileSync(join(dist, 'browser', 'LICENSES.txt'), [...packages].toSorted().map(licenseOf).join('\n'));
}

function licenseOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  const head = `${String(name)} ${String(version)} (${String(license)})\n`;
  if (file !== undefined) return `${head}\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
  // In the public domain: nothing has to be said.
  if (license === 'Unlicense') return head;
  throw new Error(`${folder} must have its license in a file, it has none; leave the package out`);
}

/** That of the clone without what serves development, its entries compiled. */
function writeManifest(): void {
  const source = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
  const {
    private: _private,
    scripts: _scripts,
    devDependencies: _development,
    overrides: _overrides,
    ...kept
  } = source;
  const entries = Object.entries(source.exports).map(([entry, file]) => [entry, compiled(file)]);
  const manifest = { ...kept, exports: Object.fromEntries(entries) };
  writeFileSync(join(dist, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

function compiled(file: string): string | { types: string; default: string } {
  if (!file.endsWith('.ts')) return file;
  const stem = file.slice(0, -'.ts'.length);
  return { types: `${stem}.d.ts`, default: `${stem}.js` };
}
