import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ClusterTarget } from '../../../src/coordinator/clusters/cluster.ts'
import { isTarget, SlotQueue, type OpenCluster } from '../../../src/coordinator/clusters/slot-queue.ts'

const cluster = (name: string, more: Partial<OpenCluster> = {}): OpenCluster => ({
  name,
  group: 'big',
  weight: 1,
  maxRunning: undefined,
  ...more,
})

/** A queue whose statements note the cluster that they got, in the order in which they got it. */
function queueOver(open: readonly OpenCluster[]) {
  const served: { readonly id: string; readonly cluster: string }[] = []
  let now = open
  const queue = new SlotQueue(() => now)
  return {
    queue,
    served,
    push: (id: string, target: ClusterTarget = { group: 'big' }, user = id, avoid?: string) =>
      queue.push({ target, user, avoid, onSlot: (name) => void served.push({ id, cluster: name }) }),
    open(next: readonly OpenCluster[]) {
      now = next
      queue.serve()
    },
  }
}

describe('The slots of clusters', () => {
  it('go to the cluster with the fewest statements for its weight, and to equals in turn', () => {
    const { push, served } = queueOver([cluster('a'), cluster('b', { weight: 2 })])
    for (const id of ['1', '2', '3', '4', '5', '6']) push(id)
    expect(served.map((one) => one.cluster)).toEqual(['b', 'a', 'b', 'b', 'a', 'b'])
    const even = queueOver([cluster('a'), cluster('b')])
    for (const id of ['1', '2']) even.push(id)
    for (const { cluster: name } of even.served.slice()) even.queue.leave(name)
    for (const id of ['3', '4']) even.push(id)
    expect(even.served.map((one) => one.cluster)).toEqual(['a', 'b', 'a', 'b'])
  })

  it('never go to a cluster that just failed, unless no other one of the target is open', () => {
    const { push, served, queue, open } = queueOver([cluster('a'), cluster('b', { maxRunning: 1 })])
    push('1', { cluster: 'b' })
    push('2', { group: 'big' }, 'ana', 'a')
    expect(served.map(({ id }) => id)).toEqual(['1'])
    queue.leave('b')
    expect(served.at(-1)).toEqual({ id: '2', cluster: 'b' })
    push('3', { group: 'big' }, 'ana', 'a')
    open([cluster('a')])
    expect(served.at(-1)).toEqual({ id: '3', cluster: 'a' })
  })

  it('go to users in turn, and to the statements of a user in the order in which they came', () => {
    const { push, served, queue } = queueOver([cluster('a', { maxRunning: 1 })])
    push('first', undefined, 'bot')
    for (const id of ['bot1', 'bot2', 'bot3']) push(id, undefined, 'bot')
    push('ana1', undefined, 'ana')
    push('ben1', undefined, 'ben')
    push('ana2', undefined, 'ana')
    for (let left = 0; left < 6; left++) queue.leave('a')
    expect(served.map(({ id }) => id)).toEqual(['first', 'bot1', 'ana1', 'ben1', 'bot2', 'ana2', 'bot3'])
    expect(queue.waitingOf({ group: 'big' })).toBe(0)
  })

  it('are not taken by a statement that no longer waits', () => {
    const { push, served, queue } = queueOver([cluster('a', { maxRunning: 1 })])
    push('1')
    const stop = push('2')
    push('3')
    expect(queue.waitingFor({ name: 'a', group: 'big' })).toBe(2)
    stop()
    stop()
    queue.leave('a')
    expect(served.map(({ id }) => id)).toEqual(['1', '3'])
    expect(queue.waitingFor({ name: 'a', group: 'big' })).toBe(0)
  })

  it('count the statements that a successor continues, also beyond the limit', () => {
    const { push, served, queue } = queueOver([cluster('a', { maxRunning: 1 })])
    queue.take('a')
    queue.take('a')
    push('1')
    queue.leave('a')
    expect([served, queue.runningAt('a')]).toEqual([[], 1])
    queue.leave('a')
    expect(served).toEqual([{ id: '1', cluster: 'a' }])
  })
})

const names = ['a', 'b', 'c', 'd'] as const
const clusters = fc
  .array(
    fc.record({
      group: fc.constantFrom('big', 'small'),
      weight: fc.constantFrom(0.5, 1, 3),
      maxRunning: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
    }),
    { minLength: 1, maxLength: names.length },
  )
  .map((list) => list.map((one, index) => cluster(names[index]!, one)))
const target = fc.oneof(
  fc.record({ group: fc.constantFrom('big', 'small') }),
  fc.record({ cluster: fc.constantFrom(...names) }),
)
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('push' as const),
      target,
      user: fc.constantFrom('ana', 'ben', 'bot'),
      avoid: fc.option(fc.constantFrom(...names), { nil: undefined }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('leave' as const), which: fc.nat(1000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stop' as const), which: fc.nat(1000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('open' as const), which: fc.nat(15) }) },
)

interface Asked {
  readonly number: number
  readonly target: ClusterTarget
  readonly user: string
  readonly avoid: string | undefined
  readonly stop: () => void
  /** How often each user was served while this statement waited. */
  readonly overtakenBy: Map<string, number>
}

describe('Any order of statements, ends and changes of clusters', () => {
  it('never exceeds a limit, leaves no slot free that a statement waits for, serves users in turn and all statements', () => {
    fc.assert(
      fc.property(clusters, fc.array(step, { maxLength: 60 }), (all, steps) => {
        let open: readonly OpenCluster[] = all
        const queue = new SlotQueue(() => open)
        const waiting = new Map<number, Asked>()
        const running: string[] = []
        let number = 0

        const room = ({ name, maxRunning = Infinity }: OpenCluster): boolean => queue.runningAt(name) < maxRunning
        const mayHave = (asked: Pick<Asked, 'target' | 'avoid'>): readonly OpenCluster[] => {
          const possible = open.filter((one) => isTarget(one, asked.target))
          const others = possible.filter(({ name }) => name !== asked.avoid)
          return others.length > 0 ? others : possible
        }
        function push(asked: Pick<Asked, 'target' | 'user' | 'avoid'>): void {
          const own = number++
          let isServed = false
          const onSlot = (name: string): void => {
            isServed = true
            const chosen = mayHave(asked).find((one) => one.name === name)
            expect(chosen, 'a cluster that it may have').toBeDefined()
            expect(queue.runningAt(name)).toBeLessThanOrEqual(chosen!.maxRunning ?? Infinity)
            running.push(name)
            for (const one of waiting.values()) {
              // Statements with the same wish: users in turn, and one user's in their order.
              if (JSON.stringify([one.target, one.avoid]) !== JSON.stringify([asked.target, asked.avoid])) continue
              if (one.user === asked.user) {
                if (one.number < own) expect(one.number, 'an earlier one of the user').toBe(own)
              } else if (one.number !== own) {
                const times = (one.overtakenBy.get(asked.user) ?? 0) + 1
                one.overtakenBy.set(asked.user, times)
              }
            }
            waiting.delete(own)
          }
          const stop = queue.push({ ...asked, onSlot })
          if (!isServed) waiting.set(own, { ...asked, number: own, stop, overtakenBy: new Map() })
        }
        function check(): void {
          for (const { name, maxRunning = Infinity } of all)
            expect(queue.runningAt(name)).toBeLessThanOrEqual(maxRunning)
          for (const asked of waiting.values()) expect(mayHave(asked).some(room), 'a free slot').toBe(false)
          expect([...queue.waiters()]).toHaveLength(waiting.size)
        }

        for (const one of steps) {
          if (one.do === 'push') push(one)
          else if (one.do === 'leave' && running.length > 0)
            queue.leave(running.splice(one.which % running.length, 1)[0]!)
          else if (one.do === 'stop' && waiting.size > 0) {
            const [key, asked] = [...waiting][one.which % waiting.size]!
            asked.stop()
            waiting.delete(key)
          } else if (one.do === 'open') {
            open = all.filter((_, index) => (one.which >> index) % 2 === 1)
            queue.serve()
          }
          check()
        }
        // All clusters are open again, and all statements end: those that wait for a cluster that exists are served.
        open = all
        queue.serve()
        while (running.length > 0) {
          queue.leave(running.shift()!)
          check()
        }
        for (const asked of waiting.values()) expect(all.some((one) => isTarget(one, asked.target))).toBe(false)
        for (const { name } of all) expect(queue.runningAt(name)).toBe(0)
      }),
      { numRuns: process.env['QUIPU_FULL_TESTS'] === '1' ? 5_000 : 300 },
    )
  })

  it('serves a user who waits after at most one statement of each other user', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('ana', 'ben', 'bot', 'cyn'), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 3 }),
        (users, maxRunning) => {
          const { push, served, queue } = queueOver([cluster('a', { maxRunning })])
          users.forEach((user, index) => push(`${index} ${user}`, undefined, user))
          for (let left = 0; left < users.length; left++) queue.leave('a')
          expect(served).toHaveLength(users.length)
          const order = served.slice(maxRunning).map(({ id }) => id.split(' ')[1]!)
          // Between two statements of a user, no other user is served twice while more of the first user wait.
          order.forEach((user, index) => {
            const next = order.indexOf(user, index + 1)
            const between = order.slice(index + 1, next < 0 ? index + 1 : next)
            expect(new Set(between).size).toBe(between.length)
          })
        },
      ),
    )
  })
})
