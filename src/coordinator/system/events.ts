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
  where: z.string().optional().describe('A condition over the history'),
  sample: z.number().min(0).max(1).optional().describe('The share of all'),
  queries: z.number().int().min(0).optional().describe('How many were named by their ids'),
})

const periodSchema = z.object({
  number: z.number().int().min(1).describe('1, 2, 3 … in this log'),
  from: z.array(z.string()).describe('By log partition: its first offset'),
  to: z.array(positionSchema).describe('By log partition: the offset behind its last, and what all below it fold to'),
  by: z.string().optional().describe('Absent where the settings ask for it'),
})

const fileVersionFields = {
  file: z.string().describe('What it is for: `rules`, `groups`, `passwords` …'),
  path: z.string(),
  digest: z
    .string()
    .describe(
      'SHA-256 of its text; where `text` is not `recorded` an HMAC-SHA256 of it, by a key of the cluster: nobody can try secrets against it',
    ),
  bytes: z.number().int(),
  entries: z.number().int().optional().describe('How many rules'),
  text: z
    .enum(['recorded', 'redacted', 'secret', 'too_long'])
    .describe('`recorded`, `redacted`: FileKept of this digest has it, of `redacted` without secrets'),
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
    .describe('A coordinator won the right to write the log; its first event in each epoch'),
  EpochEnded: z
    .object({ epoch: z.number().int(), writer: z.string(), reason: z.literal('drained') })
    .describe('The writer stopped on purpose and leaves its place to whoever claims next'),
  ConfigurationLoaded: z
    .object({
      version: z.string(),
      versions: z.record(z.string(), z.string()).optional().describe('Of what it runs on: node, duckdb …'),
      settings: z
        .record(z.string(), z.unknown())
        .describe('By path, `timeouts.longPollMs`; a secret is only said to be set'),
      catalogs: z
        .array(z.object({ name: z.string(), connector: z.string(), digest: z.string().optional() }))
        .optional()
        .describe('`digest`: HMAC-SHA256 of the file, by a key of the cluster'),
      files: z
        .array(fileVersionSchema)
        .optional()
        .describe('Files in force that say who may do what; earlier versions wrote a FileTaken for each'),
    })
    .describe('What a coordinator started with'),
  QueriesTakenOver: z
    .object({
      epoch: z.number().int(),
      queries: z.array(z.string()).describe('Their ids, in the order of their creation; at most 10,000 in one event'),
    })
    .describe(
      'The coordinator of this epoch goes on with these queries of the coordinator before. A query that is carried out has a QueryRecovered besides; one that waits in its group, or whose client fetches a complete result, has none',
    ),
  AuthenticationFailed: z
    .object({
      user: z.string(),
      examples: z
        .array(z.string())
        .optional()
        .describe('Ten of the names, where one event stands for many refused names that no user has'),
      method: z.string(),
      remoteAddress: z.string().optional(),
      count: z.number().int(),
      minute: z.string(),
    })
    .describe(
      'Refused identities, by user and minute. A name that nobody has here is told as a digest by a key of the process: it may be a password that was typed in its place',
    ),
  LoggedIn: z
    .object({
      user: z.string(),
      principal: z.string().describe('The name that was verified; the user mapping makes the user of it'),
      method: z.string(),
      groups: z.array(z.string()),
      remoteAddress: z.string().optional(),
      count: z.number().int(),
      minute: z.string(),
    })
    .describe('A credential was verified anew, by user, address and minute'),
  AccessDenied: z
    .object({
      user: z.string().describe('As whom it was asked. In version 1 who logged in'),
      originalUser: z.string().optional().describe('Who logged in, where he acted as the user'),
      action: z.string(),
      object: z
        .string()
        .describe(
          '`(others)` where one user was refused more objects in a minute. Of version 1 it ends with `, as` and the user that was acted as',
        ),
      queryId: z.string().optional().describe('Of the query that was asked for, or that asked'),
      remoteAddress: z.string().optional(),
      count: z.number().int(),
      minute: z.string(),
    })
    .describe('Refused actions, by user and minute'),
  QueryKilled: z
    .object({
      queryId: z.string(),
      by: z.string(),
      originalUser: z.string().optional().describe('Who logged in, where he acts as `by`'),
      how: endedBySchema.shape.how,
      statement: endedBySchema.shape.statement,
      message: z.string().optional().describe('Of earlier versions: the end of the query tells it, and is forgotten'),
      remoteAddress: z.string().optional(),
    })
    .describe('Somebody ended a query by its id; its QueryFailed tells the same, and stays no longer than the query'),
  ProjectionRebuilt: z
    .object({
      events: z.number(),
      milliseconds: z.number(),
      stream: z.string().optional().describe('Of one query alone'),
      deadLetters: z.number().int().optional().describe('Events that could not be taken'),
      by: z.string().optional().describe('Absent where a coordinator did it at its start'),
      remoteAddress: z.string().optional(),
    })
    .describe('The read models were made anew'),
  FileTaken: z
    .object({
      ...fileVersionFields,
      before: z.string().optional().describe('Digest of what this coordinator had in force before'),
      entriesBefore: z.number().int().optional(),
      occasion: z
        .enum(['start', 'reload'])
        .describe('`start`: of earlier versions; ConfigurationLoaded has the files of a start'),
    })
    .describe('What a file says holds from now on, at the coordinator that writes'),
  FileKept: z
    .object({
      digest: z.string(),
      part: z.number().int().min(1),
      parts: z.number().int().min(1),
      text: z.string().describe('Shown to nobody: it names the rows that are hidden, and how'),
    })
    .describe('The text of a file that says who may do what, once by digest, in parts of at most 64 Ki characters'),
  FileRefused: z
    .object({
      file: z.string(),
      path: z.string(),
      reason: z.string(),
      inForce: z.string().describe('Digest of what stays in force'),
    })
    .describe('A file was changed, and what it says now cannot be taken'),
  CertificateTaken: z
    .object({
      path: z.string(),
      names: z.string().describe('For which it is, or its subject'),
      fingerprint: z.string().describe('SHA-256 of the certificate, hex'),
      before: z.string().optional().describe('Fingerprint of what this coordinator showed before'),
      validUntil: z.string(),
      clientAuthorities: z
        .string()
        .optional()
        .describe("SHA-256 of the file of those who vouch for clients' certificates; absent where none is asked for"),
      clientAuthoritiesBefore: z.string().optional(),
      occasion: z.enum(['start', 'reload']).describe('`start`: of the coordinator, or of its epoch'),
    })
    .describe('Clients of the coordinator that writes are shown this certificate from now on'),
  TokenKeysTaken: z
    .object({
      address: z.string().describe('Without user and password'),
      keys: z
        .array(
          z.object({
            kid: z.string().optional().describe('At most 200 characters of it'),
            fingerprint: z.string().describe('SHA-256 of the public key (SubjectPublicKeyInfo), hex'),
          }),
        )
        .describe('Those that tokens are believed by'),
      before: z.array(z.string()).optional().describe('Fingerprints of those that this coordinator knew before'),
      occasion: z.enum(['start', 'reload']).describe('`start`: known when the epoch began, or the first'),
    })
    .describe('A server publishes these keys of tokens now, which are asked for when tokens come'),
  NodeDrainAsked: z
    .object({
      nodeId: nodeIdSchema,
      url: z.string(),
      before: z.enum(['active', 'suspect', 'failed']).describe('State of the worker then'),
      after: z.literal('shutting_down'),
      by: z.string(),
      originalUser: z.string().optional().describe('Who logged in, where he acts as `by`'),
      remoteAddress: z.string().optional(),
    })
    .describe(
      'Somebody told a worker to take no new tasks and to end after those that it has; its NodeLeft tells that it did',
    ),
  EpochsForgotten: z
    .object({
      nodeId: nodeIdSchema,
      id: z.string().describe('Of this act: a worker that hears no answer tells it again'),
      at: z.string().describe('When it was done, by the clock of the machine'),
      host: z.string(),
      by: z.string().describe('User of the system'),
      epochs: z.array(z.object({ logId: z.string(), epoch: z.number().int() })).describe('That were forgotten'),
      remoteAddress: z.string().optional().describe('Of the worker'),
    })
    .describe('`quipu reset-epoch` was run on the folder of a worker; that tells it once it runs again'),
  DataForgotten: z
    .object({
      stream: z.string(),
      sequences: z.array(z.number().int()),
      by: z.string(),
      originalUser: z.string().optional().describe('Who logged in, where he acts as `by`'),
      remoteAddress: z.string().optional(),
    })
    .describe('Data of events was replaced by tombstones; their digests stay'),
  ReplayStarted: z
    .object({
      replayId: z.string(),
      by: z.string(),
      originalUser: z.string().optional().describe('Who logged in, where he acts as `by`'),
      remoteAddress: z.string().optional(),
      mode: z.enum(['run', 'plan']).describe('`plan`: plans are compared, nothing is run'),
      baseline: z.string().describe('Scheme, host and port of the server that is proven good'),
      against: z.string().describe('The same of the one that is compared with it'),
      statements: z
        .number()
        .int()
        .min(0)
        .describe('How many it is to go through; those of an earlier run are left out'),
      asRecorded: z.boolean().describe('Each as the user who had posted it, rather than as `by`'),
      filter: replayFilterSchema.describe('Which statements of the record were asked for'),
    })
    .describe('Somebody runs statements of the record again, by `quipu replay`; valid before the first of them runs'),
  ReplayProgressed: z
    .object({ replayId: z.string(), by: z.string(), verdicts: verdictCountsSchema })
    .describe('How far a replay is'),
  ReplayEnded: z
    .object({
      replayId: z.string(),
      by: z.string(),
      verdicts: verdictCountsSchema,
      outcome: z
        .enum(['completed', 'stopped', 'failed'])
        .describe(
          '`stopped`: by a signal; `failed`: a server could not be reached. Of one that was killed there is no end',
        ),
    })
    .describe('A replay is over'),
  LogAnchored: anchorSchema.describe(
    'What the log holds, signed; each minute or 1,000 events in which something changed',
  ),
  AnchorKeyVouched: anchorKeySchema.describe(
    'A coordinator introduces the key that it signs anchors with, or vouches for the key of another coordinator',
  ),
  LogArchived: periodSchema
    .extend({
      anchor: z.number().int().describe('Number of the anchor that signs its end'),
      records: z.number().int(),
      events: z.number().int().describe('Records that count'),
      bytes: z.number().int().describe('Of its files'),
      digest: z
        .string()
        .describe('SHA-256 of its manifest, which names the digests of its files; forgetting a query changes it'),
    })
    .describe('A period of the log was copied into its archive, and read back'),
  LogDropped: periodSchema.describe('An archived period leaves the log: told before its records go'),
  LogContinued: z
    .object({
      logId: z.string().describe('The log before'),
      periods: z.number().int().min(1).describe('Of its archive, which has all of it'),
      anchor: z
        .number()
        .int()
        .min(1)
        .describe('Number of the anchor that signs its end, and stands in its archive alone'),
      anchorHash: z.string().describe("SHA-256 of that anchor's signed text and signature"),
      key: z.string().describe('Fingerprint of the key that signed it'),
      records: z.number().int(),
      events: z.number().int().describe('Records that count'),
      epoch: z.number().int().describe('Its newest: epochs of this log are above'),
      by: z.string(),
    })
    .describe('This log goes on from another one; among its first events'),
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
  DataForgotten: 2,
  ReplayStarted: 1,
  ReplayProgressed: 1,
  ReplayEnded: 1,
  LogAnchored: 1,
  AnchorKeyVouched: 1,
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
 * The address in the EpochStarted of a command that writes an event while no coordinator runs: it serves no clients and
 * takes over no query.
 */
export const VISITOR_ADDRESS = ''
