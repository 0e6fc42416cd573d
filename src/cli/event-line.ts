import type { ClusterEvent, ClusterEventType } from '../coordinator/clusters/events.ts'
import type { NodeEvent, NodeEventType } from '../coordinator/nodes/events.ts'
import type { QueryEvent, QueryEventType } from '../coordinator/query/stream/events.ts'
import type { SystemEvent, SystemEventType } from '../coordinator/system/events.ts'
import type { CloudEvent } from '../events/envelope.ts'
import { valueText } from './table-text.ts'
import type { TaskId } from '../shared/ids.ts'

type KnownEvent = QueryEvent | NodeEvent | ClusterEvent | SystemEvent
type KnownType = QueryEventType | NodeEventType | ClusterEventType | SystemEventType
type DataOf<T extends KnownType> = Extract<KnownEvent, { type: T }>['data']

/** The short text about an event of each type. */
const summaries: { readonly [T in KnownType]: (data: DataOf<T>) => string } = {
  QueryCreated: ({ session, sql }) => `${session.user}: ${sql}`,
  QueryQueued: ({ resourceGroup, reason, position }) => `${resourceGroup}, place ${position}: ${reason}`,
  QueryHeld: ({ act, reason, by }) => `act ${act}${by ? byUser(by) : ''}: ${reason}`,
  QueryReleased: ({ act, reason, by }) => `act ${act}${by ? byUser(by) : ''}: ${reason}`,
  QueryAdmitted: ({ resourceGroup, queuedNanos }) => `${resourceGroup}, waited ${seconds(queuedNanos)}`,
  QueryPlanned: ({ queryType, stages, tables }) =>
    `${queryType}, ${counted(stages.length, 'stage')}${tables.length > 0 ? `, ${tableNames(tables)}` : ''}`,
  TaskCreated: ({ taskId, nodeId, splits }) => `${local(taskId)} on ${nodeId}, ${counted(splits, 'split')}`,
  TaskFailed: ({ taskId, failure }) => `${local(taskId)}: ${failure.errorName}: ${failure.message}`,
  TaskRetried: ({ taskId, newTaskId, reason }) => `${local(taskId)} as ${local(newTaskId)}: ${reason}`,
  TaskCanceled: ({ taskId, reason }) => `${local(taskId)}: ${reason}`,
  TaskFinished: ({ taskId, nodeId, stats }) =>
    `${local(taskId)} on ${nodeId}, ${counted(stats.outputPositions, 'row')} out`,
  QueryProgressed: ({ tasks }) => counted(tasks.length, 'task'),
  ResultPagesPublished: ({ firstToken, pages, lastOfResult }) =>
    `${counted(pages.length, 'page')} from ${firstToken}, ${counted(sum(pages.map((page) => page.rows)), 'row')}${lastOfResult ? ', the last' : ''}`,
  ResultsDelivered: ({ token, rows, bytes }) => `page ${token}, ${counted(rows, 'row')}, ${size(bytes)}`,
  ResultPagesLost: ({ tokens, reason }) => `${counted(tokens.length, 'page')}: ${reason}`,
  WritePrepared: ({ catalog, schema, table, operation, rows, prepared }) =>
    `${operation} ${[catalog, schema, ...(table === undefined ? [] : [table])].join('.')}, ${counted(rows, 'row')} in ${counted(prepared.files.length, 'file')}`,
  WriteCommitted: ({ outcome, version }) => (version === undefined ? outcome : `${outcome}, version ${version}`),
  QueryRecovered: ({ count, phase, epoch }) => `${phase}, time ${count}, epoch ${epoch}`,
  QueryFinished: ({ rows, bytes, totals }) =>
    `${counted(rows, 'row')}, ${size(bytes)} in ${seconds(totals.elapsedNanos)}`,
  QueryFailed: ({ failure, totals, endedBy }) =>
    `${failure.errorName} after ${seconds(totals.elapsedNanos)}${endedBy ? ` by ${nameOf(endedBy)}` : ''}: ${failure.message}`,
  NodeJoined: ({ role, url, cores }) => `${role} ${url}, ${counted(cores, 'core')}`,
  NodeSuspected: ({ url, reason }) => `${url}: ${reason}`,
  NodeFailed: ({ url, reason }) => `${url}: ${reason}`,
  NodeRecovered: ({ url }) => url,
  NodeLeft: ({ url }) => url,
  ClusterFound: ({ name, url, group, before }) =>
    `${name} ${url}, group ${group}${before === undefined ? '' : ', its file changed'}`,
  ClusterGone: ({ name }) => name,
  ClusterStateAsked: ({ name, after, by, originalUser, remoteAddress, reason }) =>
    `${name} ${after}${byUser({ user: by, originalUser, remoteAddress })}${reason === undefined ? '' : `: ${reason}`}`,
  ClusterHealthChanged: ({ name, after, reason, detail }) =>
    `${name} ${after}: ${reason}${detail === undefined ? '' : `, ${detail}`}`,
  EpochStarted: ({ epoch, address, version }) => `epoch ${epoch}, ${address}, version ${version}`,
  EpochEnded: ({ epoch, reason }) => `epoch ${epoch}, ${reason}`,
  ConfigurationLoaded: ({ version, files = [] }) =>
    `version ${version}${files.map(({ file, digest }) => `, ${file} ${digest.slice(0, 12)}`).join('')}`,
  QueriesTakenOver: ({ epoch, queries }) =>
    `epoch ${epoch}, ${queries.length === 1 ? 'one query' : `${queries.length} queries`}`,
  AuthenticationFailed: ({ user, method, count }) => `${user} by ${method}, ${count} in a minute`,
  LoggedIn: ({ user, principal, method, remoteAddress }) =>
    `${user}${principal === user ? '' : ` (${principal})`} by ${method}${remoteAddress === undefined ? '' : ` from ${remoteAddress}`}`,
  AccessDenied: ({ user, originalUser, action, object, count }) =>
    `${nameOf({ user, originalUser })}: ${action} ${object}, ${count} in a minute`,
  QueryKilled: ({ queryId, by, originalUser, how = 'canceled', remoteAddress, message }) =>
    `${queryId} ${how} by ${nameOf({ user: by, originalUser })}${remoteAddress === undefined ? '' : ` from ${remoteAddress}`}${message === undefined ? '' : `: ${message}`}`,
  ProjectionRebuilt: ({ events, milliseconds, stream, by, remoteAddress }) =>
    `${stream === undefined ? '' : `${stream}, `}${counted(events, 'event')} in ${milliseconds} ms${byUser({ user: by, remoteAddress })}`,
  LogVerified: ({ findings, events, by, remoteAddress }) =>
    `${found(findings)} in ${counted(events, 'event')}${byUser({ user: by, remoteAddress })}`,
  FileTaken: ({ file, digest, before, entries, occasion }) =>
    `${file} ${digest.slice(0, 12)}${before === undefined || before === digest ? '' : ` instead of ${before.slice(0, 12)}`}${entries === undefined ? '' : `, ${counted(entries, 'rule')}`}, ${occasion}`,
  FileKept: ({ digest, part, parts }) => `${digest.slice(0, 12)}, part ${part} of ${parts}`,
  FileRefused: ({ file, reason, inForce }) => `${file}: ${reason}; ${inForce.slice(0, 12)} stays in force`,
  CertificateTaken: ({ names, fingerprint, before, validUntil, occasion }) =>
    `${fingerprint.slice(0, 12)}${before === undefined || before === fingerprint ? '' : ` instead of ${before.slice(0, 12)}`} of ${names}, until ${validUntil}, ${occasion}`,
  TokenKeysTaken: ({ address, keys, before = [], occasion }) =>
    `${address}: ${counted(keys.filter(({ fingerprint }) => !before.includes(fingerprint)).length, 'new key')} of ${keys.length}, ${occasion}`,
  NodeDrainAsked: ({ nodeId, url, by, originalUser, remoteAddress }) =>
    `${nodeId} ${url}${byUser({ user: by, originalUser, remoteAddress })}`,
  EpochsForgotten: ({ nodeId, host, by, epochs }) => `${nodeId} on ${host}, ${counted(epochs.length, 'log')} by ${by}`,
  DataForgotten: ({ stream, sequences, by, originalUser, remoteAddress }) =>
    `${stream}, ${counted(sequences.length, 'event')}${byUser({ user: by, originalUser, remoteAddress })}`,
  ErasureStarted: ({ erasureId, kind, by, originalUser, remoteAddress }) =>
    `${erasureId}: erases a ${kind === 'user' ? 'person' : 'value'}${byUser({ user: by, originalUser, remoteAddress })}`,
  ErasureEnded: ({ erasureId, queries, records, remains }) =>
    `${erasureId}: queries: ${queries}, ${counted(records, 'other event')}, left in ${counted(remains.length, 'location')}`,
  ReplayStarted: ({ replayId, by, originalUser, remoteAddress, baseline, against, statements, mode }) =>
    `${replayId}: ${counted(statements, mode === 'plan' ? 'plan' : 'statement')}, ${baseline} and ${against}${byUser({ user: by, originalUser, remoteAddress })}`,
  ReplayProgressed: ({ replayId, verdicts }) => `${replayId}: ${verdictsText(verdicts)}`,
  ReplayEnded: ({ replayId, outcome, verdicts }) => `${replayId} ${outcome}: ${verdictsText(verdicts)}`,
  ActStarted: ({ actId, act, matched, reason, by, originalUser, remoteAddress }) =>
    `${actId}: ${act} ${matched === 1 ? 'one query' : `${matched} queries`}${byUser({ user: by, originalUser, remoteAddress })}: ${reason}`,
  ActProgressed: ({ actId, through, outcomes }) => `${actId}: ${through}, ${verdictsText(outcomes)}`,
  ActEnded: ({ actId, outcomes }) => `${actId} ended: ${verdictsText(outcomes)}`,
  LogArchived: ({ number, from, to, events, bytes, by }) =>
    `period ${number}, ${rangeOf(from, to)}, ${counted(events, 'event')}, ${size(bytes)}${byUser({ user: by })}`,
  LogDropped: ({ number, from, to, by }) => `period ${number}, ${rangeOf(from, to)}${byUser({ user: by })}`,
  LogContinued: ({ logId, events, anchor, by }) =>
    `from log ${logId}, ${counted(events, 'event')}, anchor ${anchor}${byUser({ user: by })}`,
  AnchorKeyVouched: ({ key, signedBy }) => (key === signedBy ? `key ${key}` : `key ${key}, signed by ${signedBy}`),
  LogAnchored: ({ number, heads, root }) => `anchor ${number}, ${counted(heads, 'stream')}, ${root}`,
}

const TYPE_WIDTH = Math.max(...Object.keys(summaries).map((type) => type.length))
/** The length of a query's id. */
const STREAM_WIDTH = 27
const SUMMARY_WIDTH = 160

/**
 * An event as one line: time, stream, type and a summary.
 * @param type the type as in the log, e.g. `QueryFinished`
 */
export function eventLine(type: string, { time, subject, data }: CloudEvent): string {
  const summary = valueText(summaryOf(type, data).replaceAll(/\s+/g, ' ').trim())
  const short = summary.length > SUMMARY_WIDTH ? `${summary.slice(0, SUMMARY_WIDTH - 1)}…` : summary
  return `${valueText(time)}  ${valueText(subject).padEnd(STREAM_WIDTH)}  ${valueText(type).padEnd(TYPE_WIDTH)}  ${short}`.trimEnd()
}

function summaryOf(type: string, data: unknown): string {
  if (data === null) return '(forgotten)'
  if (!Object.hasOwn(summaries, type)) return JSON.stringify(data)
  try {
    return (summaries[type as KnownType] as (data: unknown) => string)(data)
  } catch {
    // The event is from a server of another version.
    return JSON.stringify(data)
  }
}

function nameOf({ user, originalUser }: { readonly user: string; readonly originalUser?: string | undefined }): string {
  return originalUser === undefined ? user : `${originalUser} as ${user}`
}

function byUser({
  user,
  originalUser,
  remoteAddress,
}: {
  readonly user: string | undefined
  readonly originalUser?: string | undefined
  readonly remoteAddress?: string | undefined
}): string {
  const from = remoteAddress === undefined ? '' : ` from ${remoteAddress}`
  return `${user === undefined ? '' : ` by ${nameOf({ user, originalUser })}`}${from}`
}

/** The part of a task id within its query: stage and number. */
function local(taskId: TaskId): string {
  return taskId.slice(taskId.indexOf('.') + 1)
}

function tableNames(tables: DataOf<'QueryPlanned'>['tables']): string {
  return tables.map(({ catalog, schema, table }) => `${catalog}.${schema}.${table}`).join(' ')
}

/** Offsets of each log partition. */
function rangeOf(from: readonly string[], to: readonly { readonly offset: string }[]): string {
  return from.map((first, partition) => `${first}-${to[partition]?.offset ?? ''}`).join(' ')
}

/** How many findings an audit had, by kind. */
function found(findings: DataOf<'LogVerified'>['findings']): string {
  const kinds = Object.entries(findings).map(([kind, count]) => `${count} ${kind}`)
  return kinds.length === 0 ? 'nothing found' : `${kinds.join(', ')} found`
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

function verdictsText(verdicts: DataOf<'ReplayEnded'>['verdicts']): string {
  return Object.entries(verdicts)
    .map(([verdict, count]) => `${count} ${verdict}`)
    .join(', ')
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function seconds(nanos: number): string {
  return `${(nanos / 1e9).toFixed(3)} s`
}

function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}
