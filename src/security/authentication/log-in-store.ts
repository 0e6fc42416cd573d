import { createHmac } from 'node:crypto'
import { networkOf } from '../../shared/network-of.ts'
import { QuipuError } from '../../shared/quipu-error.ts'
import type { EndedSessionStore } from './ended-sessions.ts'
import { seal, unseal } from './sealed.ts'

/** Runs SQL in the cluster's database and returns its rows. */
type Ask = (text: string, values: readonly unknown[]) => Promise<readonly Record<string, unknown>[]>

/** A log-in that is sent to the identity provider. */
export interface AskedLogIn {
  readonly id: Buffer
  /** Hashes of the values that the browser has to bring back. */
  readonly state: Buffer
  readonly browser: Buffer
  /** The address of the browser. */
  readonly address: string
  readonly forMs: number
  /** The values that the provider's answer is checked against. */
  readonly secrets: string
}

/** Too many log-ins are under way, in all or from one address. */
export class TooManyLogIns extends QuipuError {
  readonly retry = 'later'
}

/**
 * Log-ins under way, for all coordinators of the cluster. Secrets are stored encrypted. Every call may reject when the
 * database is unreachable.
 */
export interface LogInStore extends EndedSessionStore {
  /** Stores a log-in. @returns false when this log-in has ended already. @throws TooManyLogIns */
  ask(logIn: AskedLogIn): Promise<boolean>
  /**
   * Takes the log-in of a state that comes back in the browser that started it. It can be taken once; undefined for any
   * other state.
   */
  comeBack(state: Buffer, browser: Buffer): Promise<{ readonly id: Buffer; readonly secrets: string } | undefined>
  /** Stores the outcome of a log-in. @returns false when the log-in has expired */
  finish(id: Buffer, outcome: string): Promise<boolean>
  /** Returns the outcomes that are there, each once. `undefined`: the outcome of this log-in was returned before. */
  take(ids: readonly Buffer[]): Promise<readonly { readonly id: Buffer; readonly outcome: string | undefined }[]>
  /** Marks a renewal as used; renewals do not count for the limits. @returns false when it was used before */
  spend(id: Buffer, forMs: number): Promise<boolean>
  /** Deletes a log-in whose outcome no program will fetch. */
  drop(id: Buffer): Promise<void>
}

const MOST = 10_000
/**
 * Users are not known before they log in, so an address is limited: to this many log-ins for each slot that is free.
 */
const OF_EACH_FREE = 3

/** @param key of the purpose `log-ins` */
export function createLogInStore(ask: Ask, key: Buffer): LogInStore {
  const sourceOf = (address: string): Buffer =>
    createHmac('sha256', key)
      .update(`source ${networkOf(address)}`)
      .digest()
  const open = (purpose: string, sealed: unknown): string | undefined => unseal(key, purpose, sealed as Buffer)

  return {
    async ask({ id, state, browser, address, forMs, secrets }) {
      await ask(`delete from quipu_log.log_ins where expires_at < now()`, [])
      const source = sourceOf(address)
      const rows = await ask(
        `insert into quipu_log.log_ins (id, state, browser, source, phase, sealed, expires_at)
        select $1, $2, $3, $4, 'asked', $5, now() + $6 * interval '1 millisecond'
        where (select count(*) from quipu_log.log_ins where source = $4)
          < $8 * ($7 - (select count(*) from quipu_log.log_ins where source <> ''))
        on conflict (id) do update
          set state = excluded.state, browser = excluded.browser, source = excluded.source, phase = 'asked',
            sealed = excluded.sealed
          where log_ins.phase in ('asked', 'returned')
        returning true`,
        [id, state, browser, source, seal(key, 'secrets', secrets), Math.ceil(forMs), MOST, OF_EACH_FREE],
      )
      if (rows.length > 0) return true
      const known = await ask(`select 1 from quipu_log.log_ins where id = $1 and phase in ('done', 'taken')`, [id])
      if (known.length > 0) return false
      throw new TooManyLogIns('Too many log-ins are in progress: try again later')
    },
    async comeBack(state, browser) {
      const [row] = await ask(
        `update quipu_log.log_ins set state = null, phase = 'returned'
        where state = $1 and browser = $2 and phase = 'asked' and expires_at > now() returning id, sealed`,
        [state, browser],
      )
      const secrets = row && open('secrets', row['sealed'])
      return secrets === undefined ? undefined : { id: row!['id'] as Buffer, secrets }
    },
    async finish(id, outcome) {
      const rows = await ask(
        `update quipu_log.log_ins set phase = 'done', sealed = $2
        where id = $1 and phase = 'returned' and expires_at > now() returning true`,
        [id, seal(key, 'outcome', outcome)],
      )
      return rows.length > 0
    },
    async take(ids) {
      const rows = await ask(
        `with there as (
          select id, phase, sealed from quipu_log.log_ins
          where id = any($1) and phase in ('done', 'taken') and expires_at > now() for update
        ), taken as (
          update quipu_log.log_ins l set phase = 'taken', sealed = '' from there
          where l.id = there.id and there.phase = 'done'
        )
        select id, phase, sealed from there`,
        [ids],
      )
      return rows.map(({ id, phase, sealed }) => ({
        id: id as Buffer,
        outcome: phase === 'done' ? open('outcome', sealed) : undefined,
      }))
    },
    async spend(id, forMs) {
      const rows = await ask(
        `insert into quipu_log.log_ins (id, browser, source, phase, sealed, expires_at)
        values ($1, '', '', 'taken', '', now() + $2 * interval '1 millisecond') on conflict (id) do nothing returning true`,
        [id, Math.ceil(forMs)],
      )
      return rows.length > 0
    },
    async drop(id) {
      await ask(`update quipu_log.log_ins set phase = 'taken', state = null, sealed = '' where id = $1`, [id])
    },
    async endedSessions(withinMs) {
      const rows = await ask(
        `select id, (extract(epoch from expires_at) * 1000)::float8 as expires from quipu_log.ended_sessions
        where expires_at > now() and ($1::float8 is null or ended_at > clock_timestamp() - $1 * interval '1 millisecond')`,
        [withinMs ?? null],
      )
      return rows.map(({ id, expires }) => ({
        id: (id as Buffer).toString('base64url'),
        expiresAt: Number(expires),
      }))
    },
    async endSession({ id, expiresAt }) {
      await ask(
        `with over as (delete from quipu_log.ended_sessions where expires_at < now())
        insert into quipu_log.ended_sessions (id, expires_at) values ($1, to_timestamp($2::float8 / 1000))
        on conflict (id) do nothing`,
        [Buffer.from(id, 'base64url'), expiresAt],
      )
    },
  }
}
