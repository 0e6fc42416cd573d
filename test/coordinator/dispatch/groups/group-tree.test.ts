import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readGroupRules, type GroupRules } from '../../../../src/coordinator/dispatch/groups/group-rules.ts'
import { GroupTree, type Ticket } from '../../../../src/coordinator/dispatch/groups/group-tree.ts'
import { groupAt } from '../../../../src/coordinator/dispatch/groups/rules-lookup.ts'

type Rule = Record<string, unknown>

function rulesOf(rootGroups: readonly Rule[], quotas: Rule = {}): GroupRules {
  return readGroupRules(JSON.stringify({ rootGroups, selectors: [], ...quotas }))
}

/** A generator of numbers in [0, 1) that depends only on the seed. */
function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function treeOf(rules: GroupRules, seed = 1): GroupTree<string> {
  const tree = new GroupTree<string>(seeded(seed))
  tree.setMemory(1000)
  tree.configure(rules)
  return tree
}

/** A group tree with named queries; groups are given by their path. */
function bedOf(rules: GroupRules, seed = 1) {
  const tree = treeOf(rules, seed)
  const tickets = new Map<string, Ticket<string>>()
  return {
    tree,
    ticket: (name: string) => tickets.get(name)!,
    come(name: string, path: string, { priority = 1, recovered = false } = {}): string {
      const group = groupAt(path.split('.'), tree.rules.rootGroups)
      const ticket = tree.arrive(group, { subject: name, owner: { user: name, address: name }, priority, recovered })
      if (!ticket) return 'full'
      tickets.set(name, ticket)
      return ticket.state
    },
    hold: (name: string) => tree.hold(tickets.get(name)!),
    release(name: string): readonly string[] {
      tree.release(tickets.get(name)!)
      return tree.startAll().map(({ subject }) => subject)
    },
    end(name: string): readonly string[] {
      tree.finish(tickets.get(name)!)
      return tree.startAll().map(({ subject }) => subject)
    },
    use(name: string, usage: Partial<Parameters<typeof tree.measure>[1]>): readonly string[] {
      tree.measure(tickets.get(name)!, { cpuMillis: 0, memoryBytes: 0, scannedBytes: 0, ...usage })
      return tree.startAll().map(({ subject }) => subject)
    },
    pass(seconds: number): readonly string[] {
      tree.pass(seconds)
      return tree.startAll().map(({ subject }) => subject)
    },
  }
}

const group = (name: string, hard: number, more: Rule = {}): Rule => ({
  name,
  maxQueued: 1000,
  hardConcurrencyLimit: hard,
  ...more,
})

describe('A resource group', () => {
  it('applies its limits of running and queued queries, and those of its parents', () => {
    const bed = bedOf(
      rulesOf([group('a', 2, { maxQueued: 2, subGroups: [group('b', 1, { maxQueued: 1 }), group('c', 9)] })]),
    )
    expect(bed.come('b1', 'a.b')).toBe('running')
    expect(bed.come('b2', 'a.b')).toBe('waiting')
    expect(bed.come('b3', 'a.b')).toBe('full')
    expect(bed.tree.limitOf(bed.ticket('b2'))).toMatchObject({ kind: 'hardConcurrencyLimit', group: 'a.b', limit: 1 })
    expect(bed.come('c1', 'a.c')).toBe('running')
    expect(bed.come('c2', 'a.c')).toBe('waiting')
    expect(bed.tree.limitOf(bed.ticket('c2'))).toMatchObject({ kind: 'hardConcurrencyLimit', group: 'a', limit: 2 })
    expect(bed.come('c3', 'a.c')).toBe('full')
    expect(bed.end('c1')).toEqual(['c2'])
    expect(bed.end('b1')).toEqual(['b2'])
  })

  it('keeps a held query waiting until its release, and then takes it by its time of arrival', () => {
    const bed = bedOf(rulesOf([group('a', 1, { maxQueued: 2 })]))
    bed.come('1', 'a')
    bed.come('2', 'a')
    bed.come('3', 'a')
    expect(bed.hold('1')).toBe(false)
    expect([bed.hold('2'), bed.hold('2')]).toEqual([true, true])
    expect(bed.come('4', 'a')).toBe('full')
    expect(bed.tree.waiting().map(({ subject }) => subject)).toEqual(['3', '2'])
    expect(bed.end('1')).toEqual(['3'])
    expect(bed.release('2')).toEqual([])
    expect(bed.come('4', 'a')).toBe('waiting')
    expect(bed.end('3')).toEqual(['2'])
    bed.hold('4')
    expect(bed.end('2')).toEqual([])
    expect([...bed.tree.groups()].map(({ text }) => text)).toEqual(['a'])
    expect(bed.end('4')).toEqual([])
    expect([...bed.tree.groups()]).toEqual([])
  })

  it('holds a query that moves to another group, and lets the queries behind it start', () => {
    const bed = bedOf(rulesOf([group('a', 9, { subGroups: [group('b', 1), group('c', 1)] })]))
    bed.come('b1', 'a.b')
    bed.come('b2', 'a.b')
    bed.hold('b2')
    expect(bed.tree.move(bed.ticket('b2'), groupAt(['a', 'c'], bed.tree.rules.rootGroups))).toBe(true)
    expect(bed.tree.startAll()).toEqual([])
    expect(bed.tree.find(['a', 'c'])).toMatchObject({ queued: 1, running: 0 })
    expect(bed.come('c1', 'a.c')).toBe('running')
    expect(bed.release('b2')).toEqual([])
    expect(bed.end('c1')).toEqual(['b2'])
  })

  it('exists only while it has queries, also when it comes from a template', () => {
    const bed = bedOf(rulesOf([group('a', 2, { subGroups: [group('${USER}', 1)] })]))
    bed.come('x', 'a.ana')
    bed.come('y', 'a.ben')
    expect([...bed.tree.groups()].map(({ text }) => text)).toEqual(['a', 'a.ana', 'a.ben'])
    expect([...bed.tree.groups()].map(({ label }) => label)).toEqual(['a', 'a.${USER}', 'a.${USER}'])
    bed.end('x')
    bed.end('y')
    expect([...bed.tree.groups()]).toEqual([])
  })

  it('starts fewer queries over its soft CPU limit and none over its hard one, until the quota recovers', () => {
    const cpu = { softCpuLimit: '10s', hardCpuLimit: '20s' }
    const bed = bedOf(rulesOf([group('a', 4, cpu)], { cpuQuotaPeriod: '20s' }))
    bed.come('1', 'a')
    bed.use('1', { cpuMillis: 15_000 })
    expect(bed.come('2', 'a')).toBe('running')
    expect(bed.come('3', 'a')).toBe('waiting')
    expect(bed.tree.limitOf(bed.ticket('3'))).toMatchObject({ kind: 'softCpuLimit', running: 2, limit: 2 })
    bed.use('1', { cpuMillis: 25_000 })
    expect(bed.tree.limitOf(bed.ticket('3'))).toMatchObject({ kind: 'hardCpuLimit', usedMillis: 25_000 })
    bed.end('1')
    expect(bed.end('2')).toEqual([])
    expect(bed.pass(5)).toEqual([])
    expect(bed.pass(1)).toEqual(['3'])
  })

  it('starts no query while it uses more memory than its limit in percent or in bytes', () => {
    const bed = bedOf(
      rulesOf([
        group('a', 9, {
          softMemoryLimit: '50%',
          subGroups: [group('b', 9), group('c', 9, { softMemoryLimit: '100B' })],
        }),
      ]),
    )
    bed.come('b1', 'a.b')
    bed.come('c1', 'a.c')
    bed.use('c1', { memoryBytes: 101 })
    expect(bed.come('c2', 'a.c')).toBe('waiting')
    expect(bed.come('b2', 'a.b')).toBe('running')
    bed.use('b1', { memoryBytes: 400 })
    expect(bed.come('b3', 'a.b')).toBe('waiting')
    expect(bed.tree.limitOf(bed.ticket('b3'))).toMatchObject({ kind: 'softMemoryLimit', group: 'a', limitBytes: 500 })
    expect(bed.use('b1', { memoryBytes: 300 })).toEqual(['b3'])
    expect(bed.end('c1')).toEqual(['c2'])
  })

  it('starts no query over its scan limit until the quota recovers', () => {
    const scan = { hardPhysicalDataScanLimit: '100B' }
    const bed = bedOf(rulesOf([group('a', 9, scan)], { physicalDataScanQuotaPeriod: '10s' }))
    bed.come('1', 'a')
    bed.use('1', { scannedBytes: 150 })
    expect(bed.end('1')).toEqual([])
    expect(bed.come('2', 'a')).toBe('waiting')
    expect(bed.tree.limitOf(bed.ticket('2'))).toMatchObject({ kind: 'hardPhysicalDataScanLimit', usedBytes: 150 })
    expect(bed.pass(5)).toEqual([])
    expect(bed.pass(1)).toEqual(['2'])
  })
})

describe('Waiting queries', () => {
  it('start alternately from the sub-groups under the policy "fair"', () => {
    const bed = bedOf(rulesOf([group('a', 1, { subGroups: [group('b', 9), group('c', 9)] })]))
    for (const name of ['b1', 'b2', 'b3']) bed.come(name, 'a.b')
    for (const name of ['c1', 'c2']) bed.come(name, 'a.c')
    expect(['b1', 'b2', 'c1', 'b3'].map((name) => bed.end(name)[0])).toEqual(['b2', 'c1', 'b3', 'c2'])
  })

  it('start by priority across sub-groups, and in order of arrival within one priority', () => {
    const policy = { schedulingPolicy: 'query_priority' }
    const bed = bedOf(
      rulesOf([
        group('a', 1, { ...policy, subGroups: [group('b', 9), group('c', 9, { subGroups: [group('d', 9)] })] }),
      ]),
    )
    bed.come('first', 'a.b')
    for (const [name, path, priority] of [
      ['low', 'a.b', 1],
      ['high', 'a.c.d', 5],
      ['highest', 'a.b', 9],
      ['high too', 'a.c.d', 5],
    ] as const)
      bed.come(name, path, { priority })
    expect(['first', 'highest', 'high', 'high too'].map((name) => bed.end(name)[0])).toEqual([
      'highest',
      'high',
      'high too',
      'low',
    ])
  })

  it('start in proportion to the weights of the sub-groups under "weighted_fair"', () => {
    const policy = { schedulingPolicy: 'weighted_fair' }
    const subGroups = [group('b', 9, { schedulingWeight: 1 }), group('c', 9, { schedulingWeight: 2 })]
    const bed = bedOf(rulesOf([group('a', 6, { ...policy, subGroups })]))
    bed.tree.expect(1)
    for (let index = 0; index < 6; index++) bed.come(`b${index}`, 'a.b')
    for (let index = 0; index < 6; index++) bed.come(`c${index}`, 'a.c')
    bed.tree.expect(0)
    const started = bed.tree.startAll().map(({ subject }) => subject[0])
    expect(started.filter((name) => name === 'c')).toHaveLength(4)
    expect(started.filter((name) => name === 'b')).toHaveLength(2)
  })

  it('start after the recovered queries, which keep their order and are never refused', () => {
    const bed = bedOf(rulesOf([group('a', 1, { maxQueued: 1 })]))
    bed.tree.expect(1)
    expect(bed.come('new 1', 'a')).toBe('waiting')
    expect(bed.come('new 2', 'a')).toBe('waiting')
    expect(bed.come('new 3', 'a')).toBe('full')
    for (const name of ['old 1', 'old 2']) expect(bed.come(name, 'a', { recovered: true })).toBe('waiting')
    bed.tree.expect(0)
    expect(bed.tree.startAll().map(({ subject }) => subject)).toEqual(['old 1'])
    expect(['old 1', 'old 2', 'new 1'].map((name) => bed.end(name)[0])).toEqual(['old 2', 'new 1', 'new 2'])
  })

  it('keep their order of arrival when the rules change, and follow the new policy', () => {
    const bed = bedOf(rulesOf([group('a', 1)]))
    bed.come('runs', 'a')
    for (const [index, priority] of [1, 5, 3].entries()) bed.come(`${index}`, 'a', { priority })
    bed.tree.configure(rulesOf([group('a', 2, { schedulingPolicy: 'query_priority' })]))
    expect(bed.tree.startAll().map(({ subject }) => subject)).toEqual(['1'])
    bed.tree.configure(rulesOf([group('a', 1)]))
    expect(bed.end('runs')).toEqual([])
    expect(bed.end('1')).toEqual(['0'])
  })
})

describe('The shares of started queries', () => {
  it.each(['weighted', 'weighted_fair'])(
    'are within 10 % of the weights over 10,000 arrivals: %s',
    (schedulingPolicy) => {
      const weights: Readonly<Record<string, number>> = { b: 1, c: 2, d: 3, e: 4 }
      const subGroups = Object.entries(weights).map(([name, schedulingWeight]) =>
        group(name, 1000, { schedulingWeight, softConcurrencyLimit: 0 }),
      )
      const bed = bedOf(rulesOf([group('a', 20, { schedulingPolicy, maxQueued: 1_000_000, subGroups })]), 7)
      const draw = seeded(11)
      const running: string[] = []
      const starts: Record<string, number> = { b: 0, c: 0, d: 0, e: 0 }
      const begun = (names: readonly string[]): void => {
        for (const name of names) {
          running.push(name)
          starts[name[0]!]!++
        }
      }
      // Each sub-group always has a waiting query: only then do the weights alone decide.
      const waiting: Record<string, number> = { b: 0, c: 0, d: 0, e: 0 }
      bed.tree.expect(1)
      let arrivals = 0
      const arrive = (of: string): void => {
        bed.come(`${of}${arrivals++}`, `a.${of}`)
        waiting[of]!++
      }
      for (const of of Object.keys(weights)) for (let index = 0; index < 40; index++) arrive(of)
      bed.tree.expect(0)
      begun(bed.tree.startAll().map(({ subject }) => subject))
      for (let index = 0; index < 10_000; index++) {
        const [ended] = running.splice(Math.floor(draw() * running.length), 1)
        const names = bed.end(ended!)
        begun(names)
        for (const name of names) arrive(name[0]!)
      }
      const all = Object.values(starts).reduce((sum, one) => sum + one, 0)
      for (const [name, weight] of Object.entries(weights)) {
        expect(starts[name]! / all, name).toBeGreaterThan((weight / 10) * 0.9)
        expect(starts[name]! / all, name).toBeLessThan((weight / 10) * 1.1)
      }
    },
  )
})

describe('The group tree under any sequence of steps', () => {
  const policies = ['fair', 'weighted', 'weighted_fair', 'query_priority']
  const leaves = ['a.b', 'a.c', 'a.d.e', 'a.d.f', 'g']

  /** How the file defines `a.b`: by a name, by a template, by both (then the name counts), or not any more. */
  const forms = ['literal', 'template', 'both', 'gone'] as const

  /** Random limits of all groups. */
  const limits = fc.record({
    b: fc.constantFrom(...forms),
    hard: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 7, maxLength: 7 }),
    queued: fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 7, maxLength: 7 }),
    policy: fc.constantFrom(...policies),
    below: fc.constantFrom(...policies),
  })
  type Limits = typeof limits extends fc.Arbitrary<infer T> ? T : never

  function drawnRules({ b, hard, queued, policy, below }: Limits): GroupRules {
    const own = (name: string, at: number, more: Rule = {}) =>
      group(name, hard[at]!, { maxQueued: queued[at], ...more })
    const inner = policy === 'query_priority' ? policy : below
    const templates = { literal: [], template: [own('${X}', 1)], both: [group('${X}', 3)], gone: [] }[b]
    const names = b === 'literal' || b === 'both' ? [own('b', 1)] : []
    return rulesOf([
      own('a', 0, {
        schedulingPolicy: policy,
        subGroups: [
          ...templates,
          ...names,
          own('c', 2),
          own('d', 3, { schedulingPolicy: inner, subGroups: [own('e', 4), own('f', 5)] }),
        ],
      }),
      own('g', 6),
    ])
  }

  const step = fc.oneof(
    fc.record({
      kind: fc.constant('come' as const),
      leaf: fc.constantFrom(...leaves),
      priority: fc.integer({ min: 1, max: 3 }),
    }),
    fc.record({ kind: fc.constant('end' as const), which: fc.nat() }),
    fc.record({ kind: fc.constant('cancel' as const), which: fc.nat() }),
    fc.record({ kind: fc.constant('hold' as const), which: fc.nat() }),
    fc.record({ kind: fc.constant('release' as const), which: fc.nat() }),
    fc.record({ kind: fc.constant('rules' as const), limits }),
  )

  /** A naive model: lists of names that are counted again each time. */
  class Model {
    readonly running = new Map<string, string>()
    /** Held queries wait too. */
    readonly waiting = new Map<string, string>()
    readonly held = new Set<string>()
    rules: Limits
    constructor(rules: Limits) {
      this.rules = rules
    }
    static readonly paths = ['a', 'a.b', 'a.c', 'a.d', 'a.d.e', 'a.d.f', 'g']
    static up(leaf: string): string[] {
      return Model.paths.filter((path) => leaf === path || leaf.startsWith(`${path}.`))
    }
    count(of: ReadonlyMap<string, string>, path: string): number {
      return [...of.values()].filter((leaf) => Model.up(leaf).includes(path)).length
    }
    hard = (path: string) => (this.isGone(path) ? 0 : this.rules.hard[Model.paths.indexOf(path)]!)
    queued = (path: string) => (this.isGone(path) ? 0 : this.rules.queued[Model.paths.indexOf(path)]!)
    isGone = (path: string) => path === 'a.b' && this.rules.b === 'gone'
    canRun(leaf: string): boolean {
      return Model.up(leaf).every((path) => this.count(this.running, path) < this.hard(path))
    }
    canQueue(leaf: string): boolean {
      return Model.up(leaf).every((path) => this.count(this.waiting, path) < this.queued(path))
    }
  }

  const chosenOf = (names: readonly string[], which: number) => names[which % Math.max(1, names.length)]

  it('starts, queues, holds and refuses queries as a naive model does, and leaves no query waiting that could start', () => {
    fc.assert(
      fc.property(limits, fc.array(step, { maxLength: 80 }), fc.integer(), (first, steps, seed) => {
        const bed = bedOf(drawnRules(first), seed)
        const model = new Model(first)
        const begin = (names: readonly string[]): void => {
          for (const name of names) {
            const leaf = model.waiting.get(name)!
            // The model allows each query that starts.
            expect([model.canRun(leaf), model.held.has(name)]).toEqual([true, false])
            model.waiting.delete(name)
            model.running.set(name, leaf)
          }
        }
        for (const [index, one] of steps.entries()) {
          const name = `${index}`
          switch (one.kind) {
            case 'come': {
              const expected = model.canRun(one.leaf) ? 'running' : model.canQueue(one.leaf) ? 'waiting' : 'full'
              expect(bed.come(name, one.leaf, one)).toBe(expected)
              if (expected === 'running') model.running.set(name, one.leaf)
              if (expected === 'waiting') model.waiting.set(name, one.leaf)
              break
            }
            case 'end':
            case 'cancel': {
              const from = one.kind === 'end' ? model.running : model.waiting
              const chosen = chosenOf([...from.keys()], one.which)
              if (chosen === undefined) break
              from.delete(chosen)
              model.held.delete(chosen)
              begin(bed.end(chosen))
              break
            }
            case 'hold': {
              const chosen = chosenOf([...model.waiting.keys()], one.which)
              if (chosen === undefined) break
              model.held.add(chosen)
              expect(bed.hold(chosen)).toBe(true)
              begin(bed.tree.startAll().map(({ subject }) => subject))
              break
            }
            case 'release': {
              const chosen = chosenOf([...model.held], one.which)
              if (chosen === undefined) break
              model.held.delete(chosen)
              begin(bed.release(chosen))
              break
            }
            case 'rules':
              model.rules = one.limits
              bed.tree.configure(drawnRules(one.limits))
              begin(bed.tree.startAll().map(({ subject }) => subject))
          }
          for (const [waiting, leaf] of model.waiting)
            if (!model.held.has(waiting)) expect(model.canRun(leaf)).toBe(false)
          for (const node of bed.tree.groups()) {
            expect(node.running).toBe(model.count(model.running, node.text))
            expect(node.queued).toBe(model.count(model.waiting, node.text))
          }
        }
      }),
      { numRuns: 400 },
    )
  })

  it('starts a waiting query at some time under the policies "fair" and "weighted"', () => {
    fc.assert(
      fc.property(fc.constantFrom('fair', 'weighted'), fc.integer(), (schedulingPolicy, seed) => {
        const subGroups = ['b', 'c', 'd'].map((name) => group(name, 9, { schedulingPolicy }))
        const bed = bedOf(rulesOf([group('a', 1, { schedulingPolicy, maxQueued: 1e6, subGroups })]), seed)
        bed.come('0 runs', 'a.b')
        bed.come('the one', 'a.c')
        let running = '0 runs'
        // For each query that ends, two queries of higher priority arrive in other groups.
        for (let index = 0; running !== 'the one'; index++) {
          expect(index).toBeLessThan(1000)
          bed.come(`${index} b`, 'a.b', { priority: 3 })
          bed.come(`${index} d`, 'a.d', { priority: 3 })
          running = bed.end(running)[0]!
        }
      }),
      { numRuns: 100 },
    )
  })
})
