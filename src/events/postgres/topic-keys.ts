import type pg from 'pg'
import { KeyRing } from '../data-keys/key-ring.ts'
import { KeyTable } from '../data-keys/key-table.ts'
import type { StreamCipher } from '../record-store.ts'

/** A log in Postgres has no file of keys: the keys lie beside its records. */
const NO_FILE = ''
/** The database is there: it has just answered. */
const OPEN_WAIT_MS = 60_000

/** Keys of a log that came out of a topic: they open its records. What is written from now on lies in the clear. */
export interface TopicKeys extends StreamCipher {
  forget(names: Iterable<string>): Promise<void>
  close(): void
}

/** @returns undefined where the database has no keys of a topic */
export async function openTopicKeys(pool: pg.Pool): Promise<TopicKeys | undefined> {
  const { rows } = await pool.query<{ there: boolean }>('select exists (select from quipu_log.key_blocks) as there')
  if (!rows[0]!.there) return undefined
  const ring = new KeyRing({
    table: new KeyTable(pool, undefined),
    file: NO_FILE,
    keepsFile: false,
    log: undefined,
    encrypts: () => false,
    openWaitMs: OPEN_WAIT_MS,
  })
  await ring.open()
  return ring
}
