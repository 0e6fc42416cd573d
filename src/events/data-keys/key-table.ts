import type pg from 'pg'
import type { KeyBlock } from './key-block.ts'
import { KeyTree } from './key-tree.ts'

/** The key blocks of one log, or of all logs, in Postgres. */
export class KeyTable {
  readonly #pool: pg.Pool
  readonly #log: string | undefined

  /** @param log undefined: blocks of all logs */
  constructor(pool: pg.Pool, log: string | undefined) {
    this.#pool = pool
    this.#log = log
  }

  /** A text that changes whenever anything in the table changes. */
  async stamp(): Promise<string> {
    const { rows } = await this.#pool.query<{ stamp: string }>({
      name: 'data-keys-stamp',
      text: `select count(*) || '/' || coalesce(sum(changed), 0) as stamp from quipu_log.data_keys`,
    })
    return rows[0]!.stamp
  }

  async read(): Promise<KeyBlock[]> {
    const { rows } = await this.#pool.query<{
      id: string
      log: string
      epoch: string
      depth: number
      path: string
      secret: Buffer | null
    }>(
      `select b.id, b.log, b.epoch, b.depth, k.path, k.secret from quipu_log.key_blocks b
       join quipu_log.data_keys k on k.block = b.id where $1::text is null or b.log = $1 order by b.epoch, b.id`,
      [this.#log ?? null],
    )
    const blocks = new Map<string, { log: string; epoch: number; depth: number; secrets: Map<string, Buffer | null> }>()
    for (const { id, log, epoch, depth, path, secret } of rows) {
      const known = blocks.get(id)
      if (known) known.secrets.set(path, secret)
      else blocks.set(id, { log, epoch: Number(epoch), depth, secrets: new Map([[path, secret]]) })
    }
    return [...blocks].map(([id, { log, epoch, depth, secrets }]) => ({
      id,
      log,
      epoch,
      tree: new KeyTree(depth, secrets),
    }))
  }

  /** Adds all blocks or none; an existing block stays as it is. */
  async add(blocks: readonly KeyBlock[]): Promise<void> {
    if (blocks.length === 0) return
    const keys = blocks.flatMap(({ id, tree }) => [...tree.secrets].map(([path, secret]) => ({ id, path, secret })))
    await this.#pool.query(
      `with made as (
         insert into quipu_log.key_blocks (id, log, epoch, depth)
         select * from unnest($1::text[], $2::text[], $3::bigint[], $4::smallint[])
         on conflict do nothing returning id
       )
       insert into quipu_log.data_keys (block, path, secret)
       select k.* from unnest($5::text[], $6::text[], $7::bytea[]) as k (block, path, secret)
       where k.block in (select id from made)`,
      [
        blocks.map((block) => block.id),
        blocks.map((block) => block.log),
        blocks.map((block) => block.epoch),
        blocks.map((block) => block.tree.depth),
        keys.map((key) => key.id),
        keys.map((key) => key.path),
        keys.map((key) => key.secret),
      ],
    )
  }

  /** Removes keys of a block from the table. Keys that were forgotten before stay forgotten. */
  async forget(block: string, indexes: readonly number[]): Promise<void> {
    const client = await this.#pool.connect()
    let broken: Error | undefined
    try {
      await client.query('begin')
      const { rows: blocks } = await client.query<{ depth: number }>(
        'select depth from quipu_log.key_blocks where id = $1 for update',
        [block],
      )
      const { rows } = await client.query<{ path: string; secret: Buffer | null }>(
        'select path, secret from quipu_log.data_keys where block = $1',
        [block],
      )
      const tree = new KeyTree(blocks[0]?.depth ?? 0, new Map(rows.map((row) => [row.path, row.secret])))
      for (const index of blocks.length > 0 ? indexes : []) {
        const puncture = tree.forget(index)
        if (!puncture) continue
        await client.query('delete from quipu_log.data_keys where block = $1 and path = $2', [block, puncture.removed])
        await client.query(
          `insert into quipu_log.data_keys (block, path, secret) select $1, * from unnest($2::text[], $3::bytea[])`,
          [block, [...puncture.added.keys()], [...puncture.added.values()]],
        )
      }
      await client.query('commit')
    } catch (error) {
      broken = error as Error
      throw error
    } finally {
      // A connection in the middle of a transaction cannot be used again.
      client.release(broken)
    }
  }
}
