import type { KeyObject } from 'node:crypto'
import { generateKeyPairSync, hash } from 'node:crypto'
import { anchorCheckpoint, makeAnchor, type Anchor, type Head } from '../../src/events/audit/anchor.ts'
import { eventHash, type StoredEnvelope } from '../../src/events/envelope.ts'
import { fold, formatSeen, parseSeen, zeroState, type State } from '../../src/events/fold.ts'
import type { ReadModelBed } from './read-models.ts'

interface Row {
  readonly position: string
  readonly kind: 'event' | 'epoch'
  readonly epoch: string
  readonly writer: string
  readonly stream: string
  readonly time: Date
  readonly seen: string
  readonly data: string
}

export interface Rewriting {
  /** What becomes of an event; undefined: it is left out and all behind it closes up. */
  readonly change: (stream: string, envelope: StoredEnvelope) => StoredEnvelope | undefined
  /** What becomes of the anchors: they stay as they are, go, or are made and signed anew with another key. */
  readonly anchors?: 'keep' | 'drop' | 'sign'
}

/**
 * Writes a whole log in Postgres anew as somebody would who may write the table and knows how everything in it is made,
 * but has no key: digests, hashes, chains, numbers, positions and what each writer saw all agree afterwards.
 */
export async function rewriteLog(bed: ReadModelBed, { change, anchors = 'keep' }: Rewriting): Promise<void> {
  const rows = await bed.query<Row & Record<string, unknown>>('select * from quipu_log.events order by position')
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const chain = new Map<string, Head>()
  const states: State[] = [zeroState]
  /** New offset of what was at an old one. */
  const moved = new Map<string, number>()
  const made: { row: Row; position: number; number: number; sequence: number; seen: string; text: string }[] = []
  const resign = createResigner({ private: privateKey, public: publicKey })
  for (const row of rows) {
    const position = made.length
    moved.set(row.position, position)
    const { offset } = parseSeen(row.seen.split('|'))!
    const seenAt = moved.get(String(offset))!
    const seen = formatSeen({ offset: BigInt(seenAt), state: states[seenAt]! })
    const before = states[position]!
    if (row.kind === 'epoch') {
      const header = { kind: 'epoch', epoch: Number(row.epoch), writer: row.writer, number: 0 } as const
      states.push(fold(before, { header: { ...header, seen: { offset: 0n, state: zeroState } }, hash: '' }).state)
      made.push({ row, position, number: 0, sequence: 0, seen, text: row.data })
      continue
    }
    const stored = JSON.parse(row.data) as StoredEnvelope
    const isAnchor = stored.type === 'LogAnchored'
    let changed = isAnchor && anchors === 'drop' ? undefined : change(row.stream, stored)
    if (changed && isAnchor && anchors === 'sign')
      changed = { ...changed, data: JSON.stringify(resign.anchor(JSON.parse(changed.data) as Anchor, moved, states)) }
    if (!changed) continue
    const head = chain.get(row.stream) ?? { sequence: 0, hash: '' }
    const unhashed = {
      ...changed,
      sequence: head.sequence + 1,
      prevhash: head.hash,
      digest: changed.forgotten ? changed.digest : hash('sha256', changed.data),
    }
    const envelope = { ...unhashed, hash: eventHash(row.stream, unhashed) }
    chain.set(row.stream, { sequence: envelope.sequence, hash: envelope.hash })
    resign.event(position, row.stream, envelope)
    const number = before.number + 1
    const header = { kind: 'event', epoch: before.epoch, writer: before.writer, number } as const
    const folded = fold(before, {
      header: { ...header, seen: { offset: 0n, state: zeroState } },
      hash: envelope.hash,
    })
    states.push(folded.state)
    made.push({ row, position, number, sequence: envelope.sequence, seen, text: JSON.stringify(envelope) })
  }
  await bed.query('delete from quipu_log.events')
  for (const { row, position, number, sequence, seen, text } of made)
    await bed.query('insert into quipu_log.events values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)', [
      position,
      row.kind,
      row.epoch,
      row.writer,
      number,
      row.stream,
      sequence,
      row.time,
      seen,
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
    anchor(was: Anchor, moved: ReadonlyMap<string, number>, states: readonly State[]): Anchor {
      const end = moved.get(was.at[0]!.offset)!
      const from = previous ? Number(previous.at[0]!.offset) : 0
      const heads = new Map<string, Head>()
      for (const { position, stream, head } of events) if (position >= from && position < end) heads.set(stream, head)
      const checkpoint = { ...anchorCheckpoint(was), at: [{ offset: BigInt(end), state: states[end]! }] }
      return (previous = makeAnchor(checkpoint, heads, previous, key))
    },
  }
}
