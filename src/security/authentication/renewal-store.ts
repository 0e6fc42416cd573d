import { seal, unseal } from './sealed.ts'

/** Runs SQL in the cluster's database and returns its rows. */
type Ask = (text: string, values: readonly unknown[]) => Promise<readonly Record<string, unknown>[]>

export type TakenRenewal =
  | { readonly kind: 'taken'; readonly secrets: string }
  /** Another request asks the provider at the moment. */
  | { readonly kind: 'busy' }
  | { readonly kind: 'gone' }

/**
 * The data by which sessions are renewed, for all coordinators of the cluster, encrypted. Every call may reject when
 * the database is unreachable.
 */
export interface RenewalStore {
  /** Stores the data of a session. @param id of the session */
  keep(id: string, secrets: string, forMs: number): Promise<void>
  /** Takes the data for a request to the provider. No other caller can take it for {@link BUSY_MS}. */
  take(id: string): Promise<TakenRenewal>
  /** Replaces the data that was taken. @returns false when it was dropped meanwhile */
  put(id: string, secrets: string, forMs: number): Promise<boolean>
  /** Gives the data back unchanged. */
  release(id: string): Promise<void>
  /** Deletes the data of a session. @returns the deleted data */
  drop(id: string): Promise<string | undefined>
}

/** Longer than a request to the provider may take. */
const BUSY_MS = 30_000

/** @param key of the purpose `log-ins` */
export function createRenewalStore(ask: Ask, key: Buffer): RenewalStore {
  const bytesOf = (id: string): Buffer => Buffer.from(id, 'base64url')
  // Data that is sealed for one session cannot be opened for another, even by somebody who can write into the table.
  const sealFor = (id: string, secrets: string): Buffer => seal(key, `renewal ${id}`, secrets)
  const openFor = (id: string, sealed: unknown): string | undefined => unseal(key, `renewal ${id}`, sealed as Buffer)

  return {
    async keep(id, secrets, forMs) {
      await ask(
        `with over as (delete from quipu_log.renewals where expires_at < now())
        insert into quipu_log.renewals (id, sealed, expires_at) values ($1, $2, now() + $3 * interval '1 millisecond')`,
        [bytesOf(id), sealFor(id, secrets), forMs],
      )
    },
    async take(id) {
      const [row] = await ask(
        `with mine as (
          update quipu_log.renewals set busy_until = now() + $2 * interval '1 millisecond'
          where id = $1 and busy_until < now() and expires_at > now() returning sealed
        )
        select sealed from mine
        union all
        select null from quipu_log.renewals where id = $1 and expires_at > now() and not exists (select from mine)`,
        [bytesOf(id), BUSY_MS],
      )
      if (!row) return { kind: 'gone' }
      if (row['sealed'] === null) return { kind: 'busy' }
      const secrets = openFor(id, row['sealed'])
      return secrets === undefined ? { kind: 'gone' } : { kind: 'taken', secrets }
    },
    async put(id, secrets, forMs) {
      const rows = await ask(
        `update quipu_log.renewals
        set sealed = $2, busy_until = '-infinity', expires_at = now() + $3 * interval '1 millisecond'
        where id = $1 returning true`,
        [bytesOf(id), sealFor(id, secrets), forMs],
      )
      return rows.length > 0
    },
    async release(id) {
      await ask(`update quipu_log.renewals set busy_until = '-infinity' where id = $1`, [bytesOf(id)])
    },
    async drop(id) {
      const [row] = await ask('delete from quipu_log.renewals where id = $1 returning sealed', [bytesOf(id)])
      return row && openFor(id, row['sealed'])
    },
  }
}
