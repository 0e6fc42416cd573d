import { endedBySchema, heldBySchema } from './events.ts'
import { toCloudEvent, type CloudEvent } from '../../../events/envelope.ts'
import type { Recorded } from '../../../events/event-log.ts'
import type { SeesEnder } from './ending.ts'

/**
 * An event as users see it; the only way for an event's data out of the log. Hashes and digest are those of the whole
 * event: the parts that are left out stay in the log for a successor.
 * @param source URI reference of the log, e.g. `/quipu/<logId>`
 */
export function shownCloudEvent(event: Recorded, source: string, seesEnder: SeesEnder): CloudEvent {
  return { ...toCloudEvent(event, source), data: shownData(event, seesEnder) }
}

/**
 * The data of an event without the parts that users may not see:
 *
 * - the fragments and the data of splits of a plan, which only a successor needs;
 * - splits and snapshots of tables that only the access rules read, and the sources and the digest of the query of a
 *   refresh, which include them;
 * - digests of results and of written files, because the content of a short one can be guessed;
 * - the user that ended, held or released a query, unless this reader may see it;
 * - the address of the user that put a cluster into a state;
 * - texts of rules, which show what is hidden from which user.
 *
 * The event may be of any version, so any field may be missing.
 */
export function shownData({ type, data }: Pick<Recorded, 'type' | 'data'>, seesEnder: SeesEnder): unknown {
  if (!isRecord(data)) return data
  if (type === 'QueryPlanned' && Array.isArray(data['stages']))
    return { ...data, stages: data['stages'].map(shownStage), ...shownTables(data['tables'], data['stages']) }
  if (type === 'TaskCreated' && isRecord(data['remote'])) return { ...data, remote: without(data['remote'], 'uri') }
  if (type === 'QueryProgressed') return without(data, 'remote')
  if (type === 'FileKept') return without(data, 'text')
  if (type === 'QueryFinished') return without(data, 'digest')
  if (type === 'ResultPagesPublished' && Array.isArray(data['pages']))
    return { ...data, pages: data['pages'].map((page) => without(without(page, 'digest'), 'sha256')) }
  if (type === 'WritePrepared' && isRecord(data['prepared']))
    return {
      ...data,
      prepared: {
        ...data['prepared'],
        ...shownChange(data['prepared']['change']),
        ...shownFiles(data['prepared']['files']),
      },
    }
  if (type === 'ClusterStateAsked') {
    const { by: user, originalUser } = data
    const isSeen =
      typeof user === 'string' && seesEnder({ user, ...(typeof originalUser === 'string' && { originalUser }) })
    return isSeen ? data : without(data, 'remoteAddress')
  }
  if (type === 'QueryHeld' || type === 'QueryReleased') {
    const by = heldBySchema.safeParse(data['by'])
    return by.success && seesEnder(by.data) ? data : without(data, 'by')
  }
  if (type !== 'QueryFailed' || data['endedBy'] === undefined) return data
  const endedBy = endedBySchema.safeParse(data['endedBy'])
  return endedBy.success && seesEnder(endedBy.data) ? data : without(data, 'endedBy')
}

function shownChange(change: unknown): { readonly change?: unknown } {
  return isRecord(change) ? { change: without(without(change, 'sources'), 'query') } : {}
}

function shownFiles(files: unknown): { readonly files?: readonly unknown[] } {
  return Array.isArray(files) ? { files: files.map((file) => without(without(file, 'footer'), 'sha256')) } : {}
}

/** The tables of a plan. The snapshot of a table that only the access rules read is left out: it changes with the rows. */
function shownTables(tables: unknown, stages: readonly unknown[]): { readonly tables?: readonly unknown[] } {
  if (!Array.isArray(tables)) return {}
  const scans = stages.flatMap(scansOf)
  const ofStatement = new Set(scans.filter((scan) => !isOfRule(scan)).map(tableName))
  const ofRules = new Set(scans.filter(isOfRule).map(tableName))
  const isHidden = (table: unknown): boolean => ofRules.has(tableName(table)) && !ofStatement.has(tableName(table))
  return { tables: tables.map((table) => (isHidden(table) ? without(table, 'snapshot') : table)) }
}

function scansOf(stage: unknown): readonly unknown[] {
  const fragment = isRecord(stage) ? stage['fragment'] : undefined
  return isRecord(fragment) && Array.isArray(fragment['scans']) ? fragment['scans'] : []
}

function isOfRule(scan: unknown): boolean {
  return isRecord(scan) && scan['ofRule'] === true
}

function tableName(named: unknown): string {
  return isRecord(named) ? JSON.stringify([named['catalog'], named['schema'], named['table']]) : ''
}

function shownStage(stage: unknown): unknown {
  if (!isRecord(stage)) return {}
  const { fragment: _, withheld, splits, ...shown } = stage
  const scans = scansOf(stage)
  const isShown = (split: unknown): boolean => !(isRecord(split) && isOfRule(scans[Number(split['scan'])]))
  return {
    ...shown,
    ...(withheld === undefined ? {} : { withheld: without(withheld, 'target') }),
    ...(Array.isArray(splits) ? { splits: splits.filter(isShown).map(shownSplit) } : {}),
  }
}

function shownSplit(split: unknown): unknown {
  return without(without(split, 'data'), 'columnBytes')
}

function without(value: unknown, name: string): unknown {
  if (!isRecord(value)) return {}
  const { [name]: _, ...rest } = value
  return rest
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
