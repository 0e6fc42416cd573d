import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, normalize, relative } from 'node:path'
import { describe, expect, it } from 'vitest'

const src = new URL('../src', import.meta.url).pathname

/** The rooms that programs are composed of. */
const PARTS = [
  'config',
  'telemetry',
  'connectors',
  'execution',
  'events',
  'security',
  'duckdb',
  'sql',
  'planner',
  'coordinator',
  'readmodels',
  'erasure',
  'protocol',
  'ui',
  'replay',
  'publishing',
] as const

/** The folders that each folder may import besides `shared` and itself. The longest matching folder decides. */
const allowed: Record<string, readonly string[]> = {
  shared: [],
  config: [],
  telemetry: [],
  'connectors/spi': [],
  'execution/api': ['connectors/spi'],
  events: ['telemetry'],
  security: ['telemetry'],
  connectors: ['connectors/spi', 'telemetry'],
  'execution/engine': ['connectors/spi', 'telemetry'],
  'execution/worker': ['execution/api', 'execution/engine', 'connectors/spi', 'telemetry', 'security'],
  duckdb: [],
  sql: ['duckdb', 'connectors/spi'],
  planner: ['sql', 'connectors/spi', 'execution/api'],
  coordinator: [
    'sql',
    'planner',
    'execution/api',
    'execution/engine',
    'connectors/spi',
    'events',
    'security',
    'telemetry',
  ],
  readmodels: ['events', 'telemetry', 'coordinator/*events', 'execution/api', 'connectors/spi'],
  // The search for a person or a value in everything that was recorded.
  erasure: ['events', 'coordinator', 'readmodels'],
  replay: ['sql', 'duckdb', 'events', 'coordinator/*events'],
  publishing: ['events', 'coordinator/*events', 'telemetry'],
  supervisor: [],
  protocol: [
    'coordinator',
    'readmodels',
    'erasure',
    'execution/api',
    'execution/worker',
    'connectors/spi',
    'events',
    'security',
    'telemetry',
  ],
  ui: ['coordinator', 'readmodels', 'protocol', 'execution/api', 'security', 'telemetry'],
  // The code of all long-running programs. The rooms below compose parts and may import every part.
  processes: [...PARTS, 'supervisor'],
  'processes/event-log': [...PARTS],
  'processes/telemetry': [...PARTS],
  'processes/health': [...PARTS, 'supervisor', 'processes', 'processes/telemetry'],
  'processes/access': [...PARTS, 'supervisor', 'processes', 'processes/health'],
  'processes/record': [...PARTS, 'supervisor', 'processes', 'processes/event-log', 'processes/telemetry'],
  'processes/coordinator': [
    ...PARTS,
    'supervisor',
    'processes',
    'processes/access',
    'processes/event-log',
    'processes/health',
    'processes/record',
    'processes/telemetry',
  ],
  'processes/worker': [...PARTS, 'supervisor', 'processes', 'processes/telemetry'],
  // Commands start the processes by their files and never import their code.
  cli: [...PARTS, 'supervisor', 'processes/event-log'],
}

/** Files of an aggregate that projections may use: pure, no I/O. */
const PURE = /^coordinator\/(?:[^/]+\/)+(events|state|evolve|totals|decode-event|upcasters|[a-z-]+-(events|state))\.ts$/

function files(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory()
      ? files(join(folder, entry.name))
      : entry.name.endsWith('.ts')
        ? [join(folder, entry.name)]
        : [],
  )
}

function ruleOf(path: string): string | undefined {
  return Object.keys(allowed)
    .filter((folder) => path === folder || path.startsWith(`${folder}/`))
    .sort((a, b) => b.length - a.length)[0]
}

/** Folders that contain folders with separate rules: an entry for them covers their other files only. */
const split = new Set<string>(['processes'])

const imports = files(src).flatMap((file) => {
  const text = readFileSync(file, 'utf8')
  return [...text.matchAll(/(?<![.\w])(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => ({
    from: relative(src, file),
    spec: match[1]!,
    to: match[1]!.startsWith('.') ? relative(src, normalize(join(dirname(file), match[1]!))) : undefined,
  }))
})

describe('The imports in src', () => {
  it('have a rule for every folder', () => {
    expect(
      files(src)
        .map((file) => relative(src, file))
        .filter((file) => ruleOf(file) === undefined),
    ).toEqual([])
  })

  it('have a folder for every rule', () => {
    const named = [...Object.keys(allowed), ...Object.values(allowed).flat()].filter(
      (folder) => folder !== 'coordinator/*events',
    )
    expect(named.filter((folder) => !existsSync(join(src, folder)))).toEqual([])
  })

  it('follow the rules of the folders', () => {
    const wrong = imports.filter(({ from, to }) => {
      if (to === undefined) return false
      const rule = ruleOf(from)!
      const target = ruleOf(to)
      if (target === 'shared' && rule !== 'supervisor') return false
      // Connectors never import each other: a connector imports only from its folder.
      if (rule === 'connectors' && target === 'connectors') return from.split('/')[1] !== to.split('/')[1]
      if (target === rule) return false
      return !allowed[rule]!.some((entry) =>
        entry === 'coordinator/*events'
          ? PURE.test(to)
          : // An entry for a folder in `split` covers its other files only.
            target === entry || (!split.has(entry) && to.startsWith(`${entry}/`)),
      )
    })
    expect(wrong).toEqual([])
  })

  it('the supervisor uses Node core modules only', () => {
    expect(
      imports.filter(({ from, spec, to }) => from.startsWith('supervisor/') && !to && !spec.startsWith('node:')),
    ).toEqual([])
  })

  /** The folders that put a coordinator together. */
  const coordinatorFiles = ['coordinator', 'access', 'health', 'record'].flatMap((folder) =>
    files(join(src, 'processes', folder)),
  )

  it.each(['coordinator/query', 'processes'])('the folders of %s import each other in no circle', (room) => {
    const arrows = new Map<string, Set<string>>()
    for (const { from, to } of imports) {
      if (to === undefined || !from.startsWith(`${room}/`) || !to.startsWith(`${room}/`)) continue
      const [user, used] = [dirname(from), dirname(to)]
      if (user !== used) arrows.set(user, (arrows.get(user) ?? new Set()).add(used))
    }
    expect(arrows.size).toBeGreaterThan(4)
    // Removes each folder whose imports are all removed: only folders of a circle remain.
    for (let before = -1; before !== arrows.size;) {
      before = arrows.size
      for (const [user, used] of arrows) if (![...used].some((folder) => arrows.has(folder))) arrows.delete(user)
    }
    expect([...arrows.keys()]).toEqual([])
  })

  it('form one circle of files, imports of types included: the syntax tree of queries and expressions', () => {
    const used = new Map<string, string[]>()
    for (const { from, to } of imports) if (to !== undefined) used.set(from, [...(used.get(from) ?? []), to])
    // Removes each file whose imports are all removed: only circles, and files that import them, remain.
    for (let before = -1; before !== used.size;) {
      before = used.size
      for (const [file, others] of used) if (!others.some((other) => used.has(other))) used.delete(file)
    }
    const inCircle = [...used.keys()].filter((file) => {
      const reached = new Set<string>()
      const visit = (one: string): void => {
        for (const next of used.get(one) ?? []) if (!reached.has(next) && reached.add(next)) visit(next)
      }
      visit(file)
      return reached.has(file)
    })
    // Trino's grammar is mutual: queries contain expressions, and expressions contain queries. These files have types only.
    const ofGrammar = ['ast-json.ts', 'ast-patterns.ts', 'ast-query.ts', 'ast-routines.ts', 'ast.ts']
    expect(inCircle.toSorted()).toEqual(ofGrammar.map((file) => `sql/syntax/${file}`))
  })

  /** The files of the coordinator that may use each pool of connections to Postgres. */
  const pools: Readonly<Record<string, readonly string[]>> = {
    // No file that serves requests of clients.
    ownRead: [
      'coordinator-metrics.ts',
      'record-duties.ts',
      'start-coordinator.ts',
      'take-over.ts',
      'wire-acts.ts',
      'wire-workers.ts',
      'wire-writer.ts',
    ],
    logInRead: [],
    pollRead: ['wire-follower.ts', 'wire-resources.ts'],
    clientRead: ['app-base.ts', 'wire-resources.ts'],
    statementRead: ['wire-system.ts'],
  }

  it.each(Object.entries(pools))('connections of the pool %s are used only by their files', (pool, users) => {
    const makers = ['database-pools.ts', 'wire-base.ts']
    const used = coordinatorFiles
      .filter((file) => new RegExp(`\\b${pool}\\b`).test(readFileSync(file, 'utf8')))
      .map((file) => basename(file))
      .filter((file) => !makers.includes(file))
    expect(used.toSorted()).toEqual(users)
  })

  it('log-ins have separate connections, and no other file opens connections outside the pools', () => {
    const text = (file: string): string => readFileSync(join(src, 'processes/coordinator', file), 'utf8')
    expect(text('wire-base.ts').match(/pools\.logInRead/g)).toHaveLength(1)
    expect(text('wire-base.ts')).toContain('access.open(health.failFast(pools.logInRead))')
    const makers = coordinatorFiles.filter((file) =>
      /new (pg\.(Pool|Client)|PatientPool)\b/.test(readFileSync(file, 'utf8')),
    )
    expect(makers.map((file) => basename(file)).toSorted()).toEqual(['database-pools.ts', 'dependency-health.ts'])
  })

  it('event data becomes a CloudEvent only in shown-event.ts, which removes hidden fields', () => {
    const doors = files(src)
      .filter((file) => /\btoCloudEvent\b/.test(readFileSync(file, 'utf8')))
      .map((file) => relative(src, file))
    expect(doors.toSorted()).toEqual(['coordinator/query/stream/shown-event.ts', 'events/envelope.ts'])
  })

  it('only shared/duckdb.ts loads the library of DuckDB, at half the cost of an import', () => {
    const loaded = sources.filter(({ text }) => /(?:^import (?!type\b)[^']*|import\(|require\()'@duckdb/m.test(text))
    expect(loaded.map(({ path }) => path)).toEqual(['shared/duckdb.ts'])
  })

  it('the front end does no I/O', () => {
    const io =
      /^node:(fs|net|http|https|child_process|worker_threads|dgram|tls)|^pg$|^kafkajs$|^express$|^@duckdb|shared\/duckdb\.ts$/
    expect(imports.filter(({ from, spec }) => from.startsWith('sql/') && io.test(spec))).toEqual([])
  })

  it('only request-target.ts reads the target of a request', () => {
    const readers = sources.filter(({ path, text }) => !TARGET_READERS.has(path) && TARGET_OF_CLIENT.test(text))
    expect(readers.map(({ path }) => path)).toEqual([])
  })

  it('no address is resolved against a base address, because an absolute address would win', () => {
    const resolved = sources.flatMap(({ path, text }) =>
      [...text.matchAll(TWO_PART_URL)]
        // Allowed: a literal path, and a file beside the program.
        .filter(
          ([, first, second]) => !/^'[^']*'$/.test(first!.trim()) && !second!.trim().startsWith('import.meta.url'),
        )
        .map(([call]) => `${path}: ${call}`),
    )
    expect(resolved).toEqual(['shared/version.ts: new URL(`.git/${head.slice(5)}`, root)'])
  })

  it('every program that a file names by its path exists', () => {
    const named = sources.flatMap(({ path, text }) => [
      ...[...text.matchAll(/new URL\('(\.[^']+)\.js', import\.meta\.url/g)].map(([, file]) =>
        normalize(join(dirname(path), file!)),
      ),
      ...[...text.matchAll(/\bprogramUrl\('([^']+)'\)/g)].map(([, file]) => file!),
    ])
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter((file) => !existsSync(join(src, `${file}.ts`)))).toEqual([])
  })
})

const sources = files(src).map((file) => ({
  path: relative(src, file),
  // Comments may name forbidden code.
  text: readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, ''),
}))

/** The reader itself, and a client that keeps the address of its server under the same name. */
const TARGET_READERS = new Set(['protocol/edge/request-target.ts', 'cli/event-stream.ts'])
const TARGET_OF_CLIENT =
  /\b(?:req|request)\??\.(?:url|originalUrl|baseUrl)\b|\borig?inalUrl\b|headers\??\.host\b|headers\??\.?\[['"]host['"]\]|\{[^}]*\b(?:host|url)\b[^}]*\} = (?:req|request)\b/

/** Two arguments, with calls and templates in them one deep. */
const ARGUMENT = String.raw`((?:[^(),\`]|\`[^\`]*\`|\((?:[^()]|\([^()]*\))*\))+)`
const TWO_PART_URL = new RegExp(String.raw`new URL\(${ARGUMENT},${ARGUMENT}\)`, 'g')
