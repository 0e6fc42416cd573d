import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { keyNameOf, readEnvelope } from '../envelope.ts'
import { formatHeader } from '../fold.ts'
import type { LogPosition, RecordDropper, RecordStore, StoredRecord } from '../record-store.ts'
import type { Archive } from './archive.ts'
import { ArchiveDamaged } from './archived-records.ts'
import { CheckedFold } from './checked-fold.ts'
import { logPositionOf, type PeriodManifest } from './manifest.ts'

export interface DropDeps {
  readonly store: Pick<RecordStore, 'fetch' | 'start' | 'forget' | 'cipher'>
  readonly dropper: RecordDropper
  readonly archive: Archive
  readonly epoch: number
}

/** Most records to read and compare at once, so that other work of the event loop runs between. */
const RECORDS_AT_ONCE = 250

/**
 * Compares each record of a period that is still in the log with the archive, byte for byte. Data that was forgotten in
 * the log since the copy is forgotten in the archive too.
 * @throws ArchiveDamaged when they differ
 * @throws LogUnavailable
 */
export async function comparePeriod({ store, archive, epoch }: Omit<DropDeps, 'dropper'>, period: PeriodManifest) {
  for (const [partition, from] of (await leftOf(store, period)).entries()) {
    const end = BigInt(period.to[partition]!.offset)
    for (let offset = from.offset; offset < end;) {
      const log = await store.fetch(partition, offset, RECORDS_AT_ONCE)
      const archived = await archive.fetch(partition, offset, RECORDS_AT_ONCE)
      const count = Math.min(log.length, archived.length, Number(end - offset))
      if (count === 0) throw new ArchiveDamaged(`Period ${period.number}: the log has no offset ${offset}`)
      for (let index = 0; index < count; index++) await compare({ store, epoch }, log[index]!, archived[index]!)
      offset += BigInt(count)
      await nextLoopPass()
    }
  }
}

async function compare(
  { store, epoch }: Pick<DropDeps, 'store' | 'epoch'>,
  log: StoredRecord,
  archived: StoredRecord,
): Promise<void> {
  const headerOf = ({ header }: StoredRecord): string => (header ? formatHeader(header) : '')
  const same =
    log.offset === archived.offset &&
    log.stream === archived.stream &&
    // A topic stores the sequence only in the envelope, and so does its archive.
    (archived.sequence === undefined || log.sequence === archived.sequence) &&
    headerOf(log) === headerOf(archived)
  if (same && log.text === archived.text) return
  const [here, there] = [readEnvelope(log.text), readEnvelope(archived.text)]
  const key = here && keyNameOf(here.enc)
  // Records of a topic never change; forgetting deletes their key.
  const isGone = key !== undefined && there?.forgotten === true && store.cipher?.isForgotten(key) === true
  if (!same || !here || here.hash !== there?.hash || !(here.forgotten === true || isGone))
    throw new ArchiveDamaged(`Offset ${log.offset} of the log differs from its copy in the archive`)
  if (!there.forgotten) await store.forget(log.stream, [here.sequence], epoch)
}

/**
 * Drops the records of a period from the log, from the first on, in small groups. It may be interrupted anywhere and
 * called again.
 * @throws LogUnavailable | Fenced
 */
export async function dropPeriod(deps: DropDeps, period: PeriodManifest): Promise<void> {
  const { store, dropper, archive, epoch } = deps
  const { logId } = period
  await dropper.keepHeads(await archive.heads(period))
  for (const [partition, from] of (await leftOf(store, period)).entries()) {
    const end = logPositionOf(period.to[partition]!)
    if (dropper.recordsAtOnce >= Number(end.offset - from.offset)) {
      if (from.offset < end.offset) await dropper.drop({ partition, to: end, logId, epoch })
      continue
    }
    const fold = new CheckedFold(from)
    while (fold.position.offset < end.offset) {
      const most = Math.min(dropper.recordsAtOnce, Number(end.offset - fold.position.offset))
      for (const record of await archive.fetch(partition, fold.position.offset, most)) fold.take(record)
      await dropper.drop({ partition, to: fold.position, logId, epoch })
    }
  }
}

/** By log partition: the start of the part of a period that is still in the log. */
async function leftOf(store: DropDeps['store'], period: PeriodManifest): Promise<readonly LogPosition[]> {
  const start = await store.start?.()
  return period.from.map((from, partition) => {
    const position = logPositionOf(from)
    const begun = start?.at[partition]
    return begun && begun.offset > position.offset ? begun : position
  })
}
