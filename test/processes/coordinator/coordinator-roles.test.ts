import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ClaimCheck } from '../../../src/coordinator/recovery/writer-liveness.ts'
import type { ChildLife } from '../../../src/processes/child-life.ts'
import type { ClaimResult } from '../../../src/processes/coordinator/claim-log.ts'
import { createRoleEntries, startRoles, type RolesDeps } from '../../../src/processes/coordinator/coordinator-roles.ts'
import type { HttpEntry, WriterDeps } from '../../../src/processes/coordinator/wire-writer.ts'
import { deferred } from '../../../src/shared/deferred.ts'

const claimOf = (epoch: number) => ({ claimed: { epoch, writer: 'w' }, databaseThere: true }) as unknown as ClaimResult

/** Fake roles that record the calls they get. The listener of a role answers with the name of the role. */
class Roles {
  readonly happened: string[] = []
  readonly entry = { open: (listener: RequestListener) => (this.listener = listener) } as unknown as HttpEntry
  listener: RequestListener | undefined
  /** The result of each check of the writer. */
  found: ClaimCheck = 'writes'
  /** Runs while a writer is made, before its listener is opened. */
  whileMade: (deps: WriterDeps) => Promise<void> = async () => {}
  /** Ends the last writer. */
  lose = (): void => {}
  #epoch = 0
  readonly #stopping = new AbortController()

  readonly deps = {
    life: { fail: (error: unknown) => this.happened.push(`failed: ${String(error)}`) } as unknown as ChildLife,
    base: { telemetry: { logger: { info: () => {}, bind: () => {} } } },
    watching: { epochs: { writerAddress: undefined }, liveness: { check: async () => this.found } },
    entry: this.entry,
    stopping: this.#stopping,
    claim: async () => claimOf(++this.#epoch),
    makeWriter: async (deps: WriterDeps) => {
      const { epoch } = deps.claimed
      await this.whileMade(deps)
      deps.entry.open(named(`writer of epoch ${epoch}`))
      const lost = deferred()
      this.lose = () => {
        deps.standAside()
        lost.resolve()
      }
      if (this.lostAlready) lost.resolve()
      this.lostAlready = false
      return { lost: lost.promise, announced: () => [], drain: async () => {}, stop: async () => this.note('stopped') }
    },
    makeFollower: async () => ({
      listener: named('follower'),
      announced: () => [],
      promoted: (epoch: number) => this.note(`follower promoted in epoch ${epoch}`),
      demoted: async () => this.note('follower demoted'),
      drain: async () => {},
      stop: async () => {},
    }),
  } as unknown as RolesDeps
  /** Whether the writer that is being made has lost the log. */
  lostAlready = false

  note(what: string): void {
    this.happened.push(what)
  }

  /** The name of the role that answers a request now. */
  async answering(): Promise<string> {
    const response = { end: vi.fn<(name: string) => void>() }
    this.listener!({} as IncomingMessage, response as unknown as ServerResponse)
    await vi.waitFor(() => expect(response.end).toHaveBeenCalled())
    return response.end.mock.calls[0]![0]
  }

  stop(): void {
    this.#stopping.abort()
  }
}

const named =
  (name: string): RequestListener =>
  (_request, response) =>
    void response.end(name)

const fenceWhileMade =
  (roles: Roles) =>
  async ({ standAside }: WriterDeps): Promise<void> => {
    roles.whileMade = async () => {}
    roles.lostAlready = true
    standAside()
    await vi.waitFor(() => expect(roles.happened).toContain('follower demoted'))
  }

describe('The roles of a coordinator process', () => {
  const roles = new Roles()
  afterEach(() => roles.stop())

  it('serve as a follower when another coordinator claims the log while the writer is being made', async () => {
    roles.whileMade = fenceWhileMade(roles)
    await startRoles(roles.deps, claimOf(0))
    expect(await roles.answering()).toBe('follower')
    await vi.waitFor(() => expect(roles.happened).toEqual(['follower demoted', 'stopped']))

    // The next writer is fenced in the same way: the follower must not take itself for the writer.
    roles.whileMade = fenceWhileMade(roles)
    roles.happened.length = 0
    roles.found = 'claim'
    await vi.waitFor(() => expect(roles.happened).toContain('follower promoted in epoch 2'), 5_000)
    expect(roles.happened).toEqual(['follower demoted', 'stopped', 'follower promoted in epoch 2'])
    expect(await roles.answering()).toBe('writer of epoch 2')

    roles.found = 'writes'
    roles.lose()
    await vi.waitFor(async () => expect(await roles.answering()).toBe('follower'))
  })
})

it('an entry of an earlier role opens no listener', () => {
  const opened: RequestListener[] = []
  const next = createRoleEntries({ open: (listener: RequestListener) => opened.push(listener) } as unknown as HttpEntry)
  const listener = named('any')
  const first = next()
  first.open(listener)
  const second = next()
  first.open(named('late'))
  expect([first.isCurrent(), second.isCurrent()]).toEqual([false, true])
  expect(opened).toEqual([listener])
})
