import type { KeyObject } from 'node:crypto'
import { generateKeyPairSync, hash } from 'node:crypto'
import { anchorCheckpoint, makeAnchor, type Anchor, type Head } from '../../src/events/audit/anchor.ts'
import { eventHash, type StoredEnvelope } from '../../src/events/envelope.ts'
import { fold, formatSeen, parseHeader, zeroState, type RecordHeader, type State } from '../../src/events/fold.ts'
import type { StoredRecord } from '../../src/events/record-store.ts'
import type { ReadModelBed } from './read-models.ts'

interface Row {
  readonly position: string
  readonly kind: string
  readonly epoch: string
  readonly writer: string
  readonly number: string
  readonly seen: string
  readonly stream: string
  readonly time: Date
  readonly data: string
}

export interface Rewriting {
  /** Returns the changed event, or undefined to leave it out and close the gap. */
  readonly change: (stream: string, envelope: StoredEnvelope) => StoredEnvelope | undefined
  /** Whether anchors stay, are removed, or are made and signed again with another key. */
  readonly anchors?: 'keep' | 'drop' | 'sign'
}

/**
 * The records of a whole log, rewritten as by an attacker with the right to write the log and full knowledge of its
 * format, but without a key: digests, hashes, chains, numbers, positions and seen offsets all agree.
 */
export function rewriteRecords<T extends StoredRecord>(
  records: readonly T[],
  { change, anchors = 'keep' }: Rewriting,
): (T & { readonly header: RecordHeader; readonly sequence: number })[] {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const chain = new Map<string, Head>()
  const states: State[] = [zeroState]
  /** The new offset of the record at an old offset. */
  const moved = new Map<bigint, number>()
  const made: (T & { readonly header: RecordHeader; readonly sequence: number })[] = []
  const resign = createResigner({ private: privateKey, public: publicKey })
  for (const record of records) {
    const { stream } = record
    const was = record.header!
    const position = made.length
    const offset = BigInt(position)
    moved.set(record.offset, position)
    const seenAt = moved.get(was.seen.offset)!
    const seen = { offset: BigInt(seenAt), state: states[seenAt]! }
    const before = states[position]!
    if (was.kind === 'epoch') {
      const header = { ...was, seen }
      states.push(fold(before, { header, hash: '' }).state)
      made.push({ ...record, offset, header, sequence: 0 })
      continue
    }
    const stored = JSON.parse(record.text) as StoredEnvelope
    const isAnchor = stored.type === 'LogAnchored'
    let changed = isAnchor && anchors === 'drop' ? undefined : change(stream, stored)
    if (changed && isAnchor && anchors === 'sign')
      changed = { ...changed, data: JSON.stringify(resign.anchor(JSON.parse(changed.data) as Anchor, moved, states)) }
    if (!changed) continue
    const head = chain.get(stream) ?? { sequence: 0, hash: '' }
    const unhashed = {
      ...changed,
      sequence: head.sequence + 1,
      prevhash: head.hash,
      digest: changed.forgotten ? changed.digest : hash('sha256', changed.data),
    }
    const envelope = { ...unhashed, hash: eventHash(stream, unhashed) }
    chain.set(stream, { sequence: envelope.sequence, hash: envelope.hash })
    resign.event(position, stream, envelope)
    const { epoch, writer } = before
    const header = { kind: 'event', epoch, writer, number: before.number + 1, seen } as const
    states.push(fold(before, { header, hash: envelope.hash }).state)
    made.push({ ...record, offset, header, sequence: envelope.sequence, text: JSON.stringify(envelope) })
  }
  return made
}

/** Rewrites a whole log in Postgres with `rewriteRecords`. */
export async function rewriteLog(bed: ReadModelBed, rewriting: Rewriting): Promise<void> {
  const rows = await bed.query<Row & Record<string, unknown>>('select * from quipu_log.events order by position')
  const records = rows.map((row) => ({
    offset: BigInt(row.position),
    header: parseHeader(`${row.kind}|${row.epoch}|${row.writer}|${row.number}|${row.seen}`),
    stream: row.stream,
    text: row.data,
    time: row.time,
  }))
  const made = rewriteRecords(records, rewriting)
  await bed.query('delete from quipu_log.events')
  for (const { offset, header, stream, sequence, time, text } of made)
    await bed.query('insert into quipu_log.events values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)', [
      String(offset),
      header.kind,
      header.epoch,
      header.writer,
      header.number,
      stream,
      sequence,
      time,
      formatSeen(header.seen),
      text,
    ])
}

function createResigner(key: { private: KeyObject; public: KeyObject }) {
  const events: { position: number; stream: string; head: Head }[] = []
  let previous: Anchor | undefined
  return {
    event(position: number, stream: string, { sequence, hash: own }: StoredEnvelope): void {
      events.push({ position, stream, head: { sequence, hash: own } })
    },
    anchor(was: Anchor, moved: ReadonlyMap<bigint, number>, states: readonly State[]): Anchor {
      const end = moved.get(BigInt(was.at[0]!.offset))!
      const from = previous ? Number(previous.at[0]!.offset) : 0
      const heads = new Map<string, Head>()
      for (const { position, stream, head } of events) if (position >= from && position < end) heads.set(stream, head)
      const checkpoint = { ...anchorCheckpoint(was), at: [{ offset: BigInt(end), state: states[end]! }] }
      return (previous = makeAnchor(checkpoint, heads, previous, key))
    },
  }
}
