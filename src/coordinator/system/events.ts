import { z } from 'zod'
import { anchorSchema, positionSchema } from '../../events/audit/anchor.ts'
import { anchorKeySchema } from '../../events/audit/anchor-keys.ts'
import { nodeIdSchema } from '../../shared/id-schemas.ts'
import { endedBySchema } from '../query/stream/events.ts'

/** The number of statements by verdict, `SAME` …; verdicts without statements are absent. */
const verdictCountsSchema = z.record(z.string(), z.number().int().min(0))

const replayFilterSchema = z.object({
  since: z.iso.datetime({ offset: true }).optional(),
  until: z.iso.datetime({ offset: true }).optional(),
  user: z.string().optional(),
  source: z.string().optional(),
  where: z.string().optional().describe('Condition over the history'),
  sample: z.number().min(0).max(1).optional().describe('Share of all statements'),
  queries: z.number().int().min(0).optional().describe('How many queries were named by their ids'),
})

export const actKinds = ['kill', 'hold', 'release', 'rerun', 'forget'] as const
export type ActKind = (typeof actKinds)[number]

/**
 * The outcome of an act for one query. `unchanged`: the query was not in a state in which the act does anything;
 * `refused`: the query may not run again; `unknown`: there is no such query any more; `failed`: an error.
 */
export const actOutcomes = ['done', 'unchanged', 'refused', 'unknown', 'failed'] as const
export type ActOutcome = (typeof actOutcomes)[number]

const outcomeCountsSchema = z
  .partialRecord(z.enum(actOutcomes), z.number().int().min(0))
  .describe('Number of queries by outcome; outcomes without queries are absent')

const actProblemSchema = z.object({
  queryId: z.string(),
  outcome: z.enum(actOutcomes),
  why: z.string(),
})

const periodSchema = z.object({
  number: z.number().int().min(1).describe('Number of the period in this log: 1, 2, 3 …'),
  from: z.array(z.string()).describe('First offset of the period, by log partition'),
  to: z
    .array(positionSchema)
    .describe('Offset after the last record of the period, and the fold of all records below it, by log partition'),
  by: z.string().optional().describe('User who asked for it; absent if the settings asked for it'),
})

const fileVersionFields = {
  file: z.string().describe('Purpose of the file: `rules`, `groups`, `passwords` …'),
  path: z.string(),
  digest: z
    .string()
    .describe(
      'SHA-256 of the text. If `text` is not `recorded`, an HMAC-SHA256 of it with a key of the cluster, so that nobody can guess secrets and test them',
    ),
  bytes: z.number().int(),
  entries: z.number().int().optional().describe('Number of rules'),
  text: z
    .enum(['recorded', 'redacted', 'secret', 'too_long'])
    .describe(
      '`recorded`, `redacted`: the event FileKept with this digest has the text; `redacted` means without secrets',
    ),
}

const fileVersionSchema = z.object(fileVersionFields)

/** The events of the stream `system`. */
export const systemEventSchemas = {
  EpochStarted: z
    .object({
      epoch: z.number().int(),
      writer: z.string(),
      partitions: z.number().int(),
      logId: z.string(),
      address: z.string(),
      version: z.string(),
    })
    .describe('A coordinator won the right to write the log; the first event of each epoch'),
  EpochEnded: z
    .object({ epoch: z.number().int(), writer: z.string(), reason: z.literal('drained') })
    .describe('The writer stopped on purpose; the next coordinator may claim the log at once'),
  ConfigurationLoaded: z
    .object({
      version: z.string(),
      versions: z.record(z.string(), z.string()).optional().describe('Versions of node, duckdb …'),
      settings: z
        .record(z.string(), z.unknown())
        .describe('Settings by path, such as `timeouts.longPollMs`; of a secret only that it is set'),
      catalogs: z
        .array(z.object({ name: z.string(), connector: z.string(), digest: z.string().optional() }))
        .optional()
        .describe('Catalogs; `digest` is the HMAC-SHA256 of the file with a key of the cluster'),
      files: z
        .array(fileVersionSchema)
        .optional()
        .describe('Files in force (access rules and others); earlier versions wrote a FileTaken for each file'),
    })
    .describe('The configuration with which a coordinator started'),
  QueriesTakenOver: z
    .object({
      epoch: z.number().int(),
      queries: z
        .array(z.string())
        .describe('Ids of the queries in the order of their creation; at most 10,000 in one event'),
    })
    .describe(
      'The coordinator of this epoch continues these queries of the previous coordinator. A query that runs again also has a QueryRecovered. A query that waits in its group, or whose client fetches a complete result, has none',
    ),
  AuthenticationFailed: z
    .object({
      user: z.string(),
      examples: z
        .array(z.string())
        .optional()
        .describe('Ten of the names, if one event stands for many refused unknown names'),
      method: z.string(),
      remoteAddress: z.string().optional(),
      count: z.number().int(),
      minute: z.string(),
    })
    .describe(
      'Refused identities, by user and minute. An unknown name is recorded as a digest with a key of the process, because it may be a password that was typed in the wrong field',
    ),
  LoggedIn: z
    .object({
      user: z.string(),
      principal: z.string().describe('The verified name; the user mapping turns it into the user'),
      method: z.string(),
      groups: z.array(z.string()),
      remoteAddress: z.string().optional(),
      count: z.number().int(),
      minute: z.string(),
    })
    .describe('Verified credentials, by user, address and minute'),
  AccessDenied: z
    .object({
      user: z.string().describe('User of the refused request; in version 1 the user who logged in'),
      originalUser: z.string().optional().describe('User who logged in, if this user acted as `user`'),
      action: z.string(),
      object: z
        .string()
        .describe(
          'What the user may not use; `(others)` if one user was refused more objects in a minute. In version 1 it ends with `, as` and the user of the request',
        ),
      queryId: z.string().optional().describe('Id of the query that was requested, or that made the request'),
      remoteAddress: z.string().optional(),
      count: z.number().int(),
      minute: z.string(),
    })
    .describe('Refused actions, by user and minute'),
  QueryKilled: z
    .object({
      queryId: z.string(),
      by: z.string(),
      originalUser: z.string().optional().describe('User who logged in, if this user acts as `by`'),
      how: endedBySchema.shape.how,
      statement: endedBySchema.shape.statement,
      message: z
        .string()
        .optional()
        .describe('Only in events of earlier versions; now QueryFailed has the message, which can be forgotten'),
      remoteAddress: z.string().optional(),
    })
    .describe('A user ended a query by its id. QueryFailed says the same, but it is forgotten together with the query'),
  ProjectionRebuilt: z
    .object({
      events: z.number(),
      milliseconds: z.number(),
      stream: z.string().optional().describe('The query, if only the rows of one query were rebuilt'),
      deadLetters: z.number().int().optional().describe('Number of events that could not be applied'),
      by: z.string().optional().describe('User who asked for it; absent if a coordinator did it at its start'),
      remoteAddress: z.string().optional(),
    })
    .describe('The read models were rebuilt'),
  FileTaken: z
    .object({
      ...fileVersionFields,
      before: z.string().optional().describe('Digest of the file that was in force before'),
      entriesBefore: z.number().int().optional(),
      occasion: z
        .enum(['start', 'reload'])
        .describe('`start`: only in events of earlier versions; now ConfigurationLoaded has the files of a start'),
    })
    .describe('The writer loaded a file; its content is in force from now on'),
  FileKept: z
    .object({
      digest: z.string(),
      part: z.number().int().min(1),
      parts: z.number().int().min(1),
      text: z.string().describe('Never shown to users, because it says which rows are hidden, and how'),
    })
    .describe(
      'The text of a file (access rules and others), once for each digest, in parts of at most 64 Ki characters',
    ),
  FileRefused: z
    .object({
      file: z.string(),
      path: z.string(),
      reason: z.string(),
      inForce: z.string().describe('Digest of the file that stays in force'),
    })
    .describe('A changed file could not be loaded; its earlier content stays in force'),
  CertificateTaken: z
    .object({
      path: z.string(),
      names: z.string().describe('Names of the certificate, or its subject'),
      fingerprint: z.string().describe('SHA-256 of the certificate, hex'),
      before: z.string().optional().describe('Fingerprint of the certificate that this coordinator used before'),
      validUntil: z.string(),
      clientAuthorities: z
        .string()
        .optional()
        .describe(
          'SHA-256 of the file with the authorities for certificates of clients; absent if clients need no certificate',
        ),
      clientAuthoritiesBefore: z.string().optional(),
      occasion: z.enum(['start', 'reload']).describe('`start`: at the start of the coordinator or of its epoch'),
    })
    .describe('The writer uses this certificate from now on'),
  TokenKeysTaken: z
    .object({
      address: z.string().describe('Address without user and password'),
      keys: z
        .array(
          z.object({
            kid: z.string().optional().describe('Key id, at most 200 characters of it'),
            fingerprint: z.string().describe('SHA-256 of the public key (SubjectPublicKeyInfo), hex'),
          }),
        )
        .describe('Keys that verify tokens'),
      before: z.array(z.string()).optional().describe('Fingerprints of the keys that this coordinator knew before'),
      occasion: z.enum(['start', 'reload']).describe('`start`: known when the epoch began, or the first keys'),
    })
    .describe('A server publishes these keys for tokens; Quipu fetches them when tokens arrive'),
  NodeDrainAsked: z
    .object({
      nodeId: nodeIdSchema,
      url: z.string(),
      before: z.enum(['active', 'suspect', 'failed']).describe('State of the worker before'),
      after: z.literal('shutting_down'),
      by: z.string(),
      originalUser: z.string().optional().describe('User who logged in, if this user acts as `by`'),
      remoteAddress: z.string().optional(),
    })
    .describe(
      'A user drained a worker: it takes no new tasks, and ends after its current tasks. NodeLeft records its end',
    ),
  EpochsForgotten: z
    .object({
      nodeId: nodeIdSchema,
      id: z.string().describe('Id of this act: a worker that gets no answer reports it again'),
      at: z.string().describe('Time of the act, by the clock of the machine'),
      host: z.string(),
      by: z.string().describe('User of the operating system'),
      epochs: z.array(z.object({ logId: z.string(), epoch: z.number().int() })).describe('The deleted epochs'),
      remoteAddress: z.string().optional().describe('Address of the worker'),
    })
    .describe('A user ran `quipu reset-epoch` on the folder of a worker; the worker reports it when it runs again'),
  DataForgotten: z
    .object({
      stream: z.string(),
      sequences: z.array(z.number().int()),
      by: z.string(),
      originalUser: z.string().optional().describe('User who logged in, if this user acts as `by`'),
      remoteAddress: z.string().optional(),
      erasureId: z.string().optional().describe('The erasure that found the events; absent for `quipu forget`'),
      act: z.string().optional().describe('The act on many queries that forgot the query'),
    })
    .describe('The data of events was replaced by tombstones; the digests of the data stay'),
  ErasureStarted: z
    .object({
      erasureId: z.string(),
      kind: z.enum(['user', 'value']).describe('Whether a person or a value is erased'),
      subjectHash: z
        .string()
        .describe('HMAC-SHA256 of the person or the value with a key of the cluster; the event never has the text'),
      mentions: z
        .boolean()
        .describe('Whether queries that only mention the user, and recorded texts of rule files, are erased too'),
      reason: z.string().optional(),
      by: z.string(),
      originalUser: z.string().optional().describe('User who logged in, if this user acts as `by`'),
      remoteAddress: z.string().optional(),
    })
    .describe('A user asked to erase everything about a person, or everything with a value'),
  ErasureEnded: z
    .object({
      erasureId: z.string(),
      queries: z.number().int().min(0).describe('Number of queries whose data was removed'),
      records: z.number().int().min(0).describe('Number of other events whose data was removed'),
      waiting: z.number().int().min(0).describe('Number of found queries that had not ended'),
      searched: z.number().int().min(0).describe('Number of locations that were searched afterwards'),
      remains: z
        .array(
          z.object({
            location: z.string().describe('A table, a folder, a file or a topic'),
            found: z.number().int().min(0).describe('Number of events, rows or messages'),
            until: z.string().optional().describe('When they leave by themselves, ISO UTC; absent: never'),
            why: z.string().optional(),
          }),
        )
        .describe('Where a search afterwards found the person or the value; empty: nowhere'),
    })
    .describe('An erasure has ended, and all locations were searched again'),
  ReplayStarted: z
    .object({
      replayId: z.string(),
      by: z.string(),
      originalUser: z.string().optional().describe('User who logged in, if this user acts as `by`'),
      remoteAddress: z.string().optional(),
      mode: z
        .enum(['run', 'plan', 'shadow'])
        .describe(
          '`plan`: only plans are compared, no statement runs; `shadow`: statements run on the other server as they finish here',
        ),
      baseline: z.string().describe('Scheme, host and port of the server that is proven good'),
      against: z.string().describe('Scheme, host and port of the server that is compared with it'),
      statements: z
        .number()
        .int()
        .min(0)
        .describe('Number of statements to replay, without the statements of an earlier run; 0 for a shadow'),
      asRecorded: z.boolean().describe('True: each statement runs as the user who posted it, not as `by`'),
      filter: replayFilterSchema.describe('The requested statements of the record'),
    })
    .describe('A user runs recorded statements again with `quipu replay`; valid before the first statement runs'),
  ReplayProgressed: z
    .object({ replayId: z.string(), by: z.string(), verdicts: verdictCountsSchema })
    .describe('Progress of a replay'),
  ReplayEnded: z
    .object({
      replayId: z.string(),
      by: z.string(),
      verdicts: verdictCountsSchema,
      outcome: z
        .enum(['completed', 'stopped', 'failed'])
        .describe('`stopped`: by a signal; `failed`: a server could not be reached. A killed replay has no such event'),
    })
    .describe('A replay has ended'),
  ActStarted: z
    .object({
      actId: z.string(),
      act: z.enum(actKinds),
      by: z.string(),
      originalUser: z.string().optional().describe('User who logged in, if this user acts as `by`'),
      remoteAddress: z.string().optional(),
      reason: z.string().describe('Without secrets. It is not forgotten with the queries'),
      filter: z.record(z.string(), z.string()).describe('Parameters of `GET /v1/query` that chose the queries'),
      before: z.iso.datetime().describe('Only queries from before the preview: this is the time of the preview'),
      searchedSince: z.iso
        .datetime()
        .optional()
        .describe('Only queries that were created since then were searched for the text of the filter; absent: all'),
      matched: z.number().int().min(0).describe('Number of `queries`'),
      queries: z.array(z.string()).describe('Ids of the queries, the newest first; at most 10,000'),
    })
    .describe('A user does the same with many queries; valid before anything is done with the first query'),
  ActProgressed: z
    .object({
      actId: z.string(),
      through: z.number().int().min(0).describe('How many queries of the act are done, in their order'),
      outcomes: outcomeCountsSchema,
      problems: z.array(actProblemSchema).describe('The first 100 queries with which nothing could be done'),
    })
    .describe('Progress of an act. After a crash the next coordinator continues from here'),
  ActEnded: z
    .object({ actId: z.string(), outcomes: outcomeCountsSchema, problems: z.array(actProblemSchema) })
    .describe('An act is done with all its queries'),
  LogAnchored: anchorSchema.describe(
    'A signed digest of the log; made each minute, or after 1,000 events, if the log changed',
  ),
  AnchorKeyVouched: anchorKeySchema.describe(
    'A coordinator introduces its key for anchors, or the key of another coordinator',
  ),
  LogVerified: z
    .object({
      by: z.string().describe('User of the operating system who ran the audit'),
      remoteAddress: z.string().optional(),
      findings: z.record(z.string(), z.number().int().min(1)).describe('Number of findings by kind; empty: none'),
      records: z.number().int().min(0).describe('Number of records that were read'),
      events: z.number().int().min(0).describe('Number of valid records'),
      queries: z.number().int().min(0),
      open: z.number().int().min(0).describe('Number of queries without an end, of the newest epoch'),
      anchors: z.number().int().min(0),
      signatures: z.number().int().min(0).describe('Number of anchors whose signature was verified; 0 without a key'),
      periods: z.number().int().min(0).describe('Number of archived periods whose files were read'),
      tables: z.number().int().min(0).describe('Number of tables of the read models that were compared with the log'),
      milliseconds: z.number().min(0),
    })
    .describe('`quipu audit verify` ran while a coordinator wrote the log; the command reports its result'),
  LogArchived: periodSchema
    .extend({
      anchor: z.number().int().describe('Number of the anchor that signs its end'),
      records: z.number().int(),
      events: z.number().int().describe('Number of valid records'),
      bytes: z.number().int().describe('Size of the files of the period'),
      digest: z
        .string()
        .describe(
          'SHA-256 of the manifest of the period, which names the digests of its files; forgetting a query changes it',
        ),
    })
    .describe('A period of the log was copied to the archive, and read back'),
  LogDropped: periodSchema.describe('An archived period leaves the log; recorded before its records are deleted'),
  LogContinued: z
    .object({
      logId: z.string().describe('Id of the earlier log'),
      periods: z.number().int().min(1).describe('Number of periods in the archive, which has the whole earlier log'),
      anchor: z
        .number()
        .int()
        .min(1)
        .describe('Number of the anchor that signs the end of the earlier log; only the archive has this anchor'),
      anchorHash: z.string().describe('SHA-256 of the signed text and the signature of this anchor'),
      key: z.string().describe('Fingerprint of the key that signed this anchor'),
      records: z.number().int(),
      events: z.number().int().describe('Number of valid records'),
      epoch: z.number().int().describe('Newest epoch of the earlier log; epochs of this log are higher'),
      by: z.string(),
    })
    .describe('This log continues an earlier log; one of its first events'),
} as const

export type SystemEventType = keyof typeof systemEventSchemas

/** Version of each event type's payload; a change of shape raises it and adds an upcaster. */
export const systemEventVersions: Readonly<Record<SystemEventType, number>> = {
  EpochStarted: 1,
  EpochEnded: 1,
  ConfigurationLoaded: 2,
  QueriesTakenOver: 1,
  AuthenticationFailed: 2,
  LoggedIn: 1,
  AccessDenied: 2,
  QueryKilled: 3,
  ProjectionRebuilt: 2,
  FileTaken: 1,
  FileKept: 1,
  FileRefused: 1,
  CertificateTaken: 1,
  TokenKeysTaken: 1,
  NodeDrainAsked: 1,
  EpochsForgotten: 1,
  DataForgotten: 3,
  ErasureStarted: 1,
  ErasureEnded: 1,
  ReplayStarted: 2,
  ReplayProgressed: 1,
  ReplayEnded: 1,
  ActStarted: 2,
  ActProgressed: 1,
  ActEnded: 1,
  LogAnchored: 1,
  AnchorKeyVouched: 1,
  LogVerified: 1,
  LogArchived: 1,
  LogDropped: 1,
  LogContinued: 1,
}

export type SystemEvent = {
  [T in SystemEventType]: {
    readonly type: T
    readonly time: string
    readonly data: Readonly<z.infer<(typeof systemEventSchemas)[T]>>
  }
}[SystemEventType]

export const systemStream = 'system'

/**
 * Events about the acts of persons. Their data can be removed: no other event, read model or audit depends on it. The
 * records of the log about itself and about what was forgotten are not among them.
 */
const PERSONAL: ReadonlySet<string> = new Set<SystemEventType>([
  'LoggedIn',
  'AuthenticationFailed',
  'AccessDenied',
  'QueryKilled',
  'ProjectionRebuilt',
  'NodeDrainAsked',
  'EpochsForgotten',
  'ReplayStarted',
  'ReplayProgressed',
  'ReplayEnded',
  'ActStarted',
  'ActProgressed',
  'ActEnded',
  'FileKept',
])

/**
 * Whether the data of an event can be removed alone. A log in Kafka encrypts it with a key of its own, as it encrypts the
 * events of a query with a key of the query.
 */
export function isPersonalEvent(stream: string, type: string): boolean {
  return stream === systemStream && PERSONAL.has(type)
}

/**
 * The address in the EpochStarted of a command that writes an event while no coordinator runs: it serves no clients and
 * takes over no query.
 */
export const VISITOR_ADDRESS = ''
