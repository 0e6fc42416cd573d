import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as nextLoopPass } from 'node:timers/promises'
import type { ExportedAnchor, SignedPosition } from '../audit/anchor.ts'
import type { StreamHead } from '../record-store.ts'
import { ArchiveDamaged } from './archived-records.ts'
import { CheckedFold } from './checked-fold.ts'
import { logPositionOf, signedPositionOf, type PeriodManifest, type Segment } from './manifest.ts'
import { sha256Of, unpackLines, unpackRecords } from './segment.ts'
import { headsOf, StreamIndexBuilder } from './stream-index.ts'

/** Number of records after which other work of the event loop may run. */
const RECORDS_AT_ONCE = 250

export interface PeriodBefore {
  readonly manifest: PeriodManifest
  /** Last events of the streams that never end, up to the end of that period. */
  readonly heads: ReadonlyMap<string, StreamHead>
}

export interface PeriodCheck {
  /** The folder with the period's files. */
  readonly folder: string
  readonly manifest: PeriodManifest
  readonly before: PeriodBefore | undefined
  /** Whether a stream can end. */
  readonly canEnd: (stream: string) => boolean
  /** Whether an anchor is signed by a key that the caller believes. */
  readonly isBelieved: (anchor: ExportedAnchor) => boolean
}

/**
 * Reads a period back from its files. Checks that each file is unchanged, that they follow one another, that they fold
 * from the end of the period before to the state that an anchor signed, and that index and last events match the
 * records. Needs no data keys.
 * @throws ArchiveDamaged with the first fault
 */
export async function checkPeriod(check: PeriodCheck): Promise<void> {
  const { manifest, before, canEnd, isBelieved } = check
  const damaged = (what: string): ArchiveDamaged => new ArchiveDamaged(`Period ${manifest.number}: ${what}`)
  if (!isBelieved(manifest.anchor)) throw damaged(`anchor ${manifest.anchor.number} was not signed with a trusted key`)
  if (before && !samePositions(before.manifest.to, manifest.from))
    throw damaged('it does not begin at the end of the period before it')
  if (!before && manifest.from.some(({ offset, count }) => offset !== '0' || count !== 0))
    throw damaged('it is the first period, but does not begin with the log')
  if (!samePositions(manifest.to, manifest.anchor.at)) throw damaged('it does not end where its anchor signed')
  const index = new StreamIndexBuilder(manifest.from.map(logPositionOf), before?.heads ?? new Map(), canEnd)
  let [records, events] = [0, 0]
  for (const [partition, start] of manifest.from.entries()) {
    const fold = new CheckedFold(logPositionOf(start))
    for (const segment of manifest.segments.filter((one) => one.partition === partition)) {
      records += await foldSegment(check, segment, fold, index)
      if (fold.position.offset !== BigInt(segment.to)) throw damaged(`${segment.name} ends too early`)
    }
    events += fold.events
    if (!samePositions([signedPositionOf(fold.position)], [manifest.to[partition]!]))
      throw damaged(`its records differ from what anchor ${manifest.anchor.number} signed`)
  }
  if (records !== manifest.records || events !== manifest.events) throw damaged('its number of records is wrong')
  const { names } = index
  if (names?.first !== manifest.names?.first || names?.last !== manifest.names?.last)
    throw damaged('it names other streams than its records have')
  if (!(await hasIndex(check, index))) throw damaged('its index does not match its streams')
  const heads = headsOf(await unpackLines(await fileOf(check, manifest.heads)))
  const same = [...index.heads].every(([stream, { sequence, hash }]) => {
    const head = heads.get(stream)
    return head?.sequence === sequence && head.hash === hash
  })
  if (!same || heads.size !== index.heads.size)
    throw damaged('it names other last events of streams than its records have')
}

async function foldSegment(
  check: PeriodCheck,
  segment: Segment,
  fold: CheckedFold,
  index: StreamIndexBuilder,
): Promise<number> {
  const records = await unpackRecords(await fileOf(check, segment))
  for (const [at, record] of records.entries()) {
    const envelope = fold.take(record)
    if (envelope) index.add(record.stream, segment.partition, record.offset, envelope)
    if (at % RECORDS_AT_ONCE === 0) await nextLoopPass()
  }
  return records.length
}

async function hasIndex(check: PeriodCheck, index: StreamIndexBuilder): Promise<boolean> {
  const { streams } = check.manifest
  const bytes = await fileOf(check, streams)
  const made = index.lines()
  let passed = 0
  for (const { first, at, bytes: length } of streams.blocks) {
    const lines = await unpackLines(bytes.subarray(at, at + length))
    const expected = made.slice(passed, passed + lines.length)
    if (expected[0]?.[0] !== first || JSON.stringify(lines) !== JSON.stringify(expected)) return false
    passed += lines.length
    await nextLoopPass()
  }
  return passed === made.length
}

/** Reads a file of the period and checks its digest. */
async function fileOf(
  { folder, manifest: { number } }: PeriodCheck,
  { name, sha256 }: { readonly name: string; readonly sha256: string },
): Promise<Buffer> {
  const bytes = await readFile(join(folder, name)).catch((cause: Error) => {
    throw new ArchiveDamaged(`Period ${number}: ${name} cannot be read: ${cause.message}`, { cause })
  })
  if (sha256Of(bytes) !== sha256) throw new ArchiveDamaged(`Period ${number}: ${name} was changed after it was written`)
  return bytes
}

function samePositions(a: readonly SignedPosition[], b: readonly SignedPosition[]): boolean {
  const text = (positions: readonly SignedPosition[]): string =>
    JSON.stringify(positions.map(logPositionOf).map(signedPositionOf))
  return text(a) === text(b)
}
