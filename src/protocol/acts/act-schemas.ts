import { z } from 'zod'
import { actKinds, actOutcomes } from '../../coordinator/system/events.ts'
import { isQueryId } from '../../shared/ids.ts'
import { filterParameters } from '../query/query-filter.ts'
import { queryStates } from '../query/query-states.ts'

/** The most ids of queries in a filter. */
const MOST_NAMED = 1000
const LONGEST_REASON = 1000

const count = z.int().min(0)
const timestamp = z.iso.datetime({ offset: true })
const searchedSince = timestamp
  .optional()
  .describe('Present if only the newest queries were searched for `q`: those created at or after this time')

/** The queries of an act: parameters of `GET /v1/query`, or ids of queries; all must hold. Other names are refused. */
const actFilterSchema = z.strictObject({
  ...filterParameters,
  queries: z
    .array(z.string().refine(isQueryId, 'is not a query id'))
    .min(1)
    .max(MOST_NAMED)
    .optional()
    .describe('Ids of queries'),
})
export type ActFilter = z.output<typeof actFilterSchema>

const actKind = z.enum(actKinds).describe('What is done with each query')

/** Body of `POST /v1/act/preview`. */
export const actPreviewBody = z.strictObject({ act: actKind, filter: actFilterSchema })

/** Body of `POST /v1/act`. */
export const actBody = z.strictObject({
  act: actKind,
  filter: actFilterSchema,
  reason: z
    .string()
    .trim()
    .min(1)
    .max(LONGEST_REASON)
    .refine((text) => !text.includes('\0') && !/\p{Cs}/u.test(text), 'is not valid text')
    .describe('Shown to the users of the queries, and kept in the record'),
  token: z.string().max(2000).describe('The token of a preview with the same act and filter'),
})

const previewedQuery = z.looseObject({
  queryId: z.string(),
  state: z.enum(queryStates),
  user: z.string(),
  source: z.string().optional(),
  resourceGroupId: z.array(z.string()),
  createTime: timestamp,
  query: z.string().describe('The first 200 characters of the text'),
})

/** The answer to `POST /v1/act/preview`. */
export const actPreviewSchema = z.looseObject({
  act: actKind,
  matched: count.describe('How many queries the act would be about'),
  searchedSince,
  denied: count.describe('How many other queries match that the user may see but not end'),
  states: z.partialRecord(z.enum(queryStates), count).describe('Number of matched queries by state'),
  users: z
    .array(z.looseObject({ user: z.string(), queries: count }))
    .describe('The 20 users with the most matched queries'),
  queries: z.array(previewedQuery).describe('The first 100 matched queries, the newest first'),
  token: z.string().describe('For `POST /v1/act` by the same user'),
  expires: timestamp,
})
export type ActPreview = z.infer<typeof actPreviewSchema>

/** An act. */
export const actInfoSchema = z.looseObject({
  actId: z.string(),
  act: actKind,
  state: z.enum(['RUNNING', 'ENDED']),
  user: z.string(),
  originalUser: z.string().optional().describe('User who logged in, if this user acts as `user`'),
  remoteAddress: z.string().optional(),
  reason: z.string(),
  filter: z.record(z.string(), z.string()),
  before: timestamp.describe('Only queries from before this time: the time of the preview'),
  searchedSince,
  matched: count.describe('How many queries the act is about'),
  done: count.describe('How many of them have an outcome'),
  outcomes: z.partialRecord(z.enum(actOutcomes), count).describe('Number of queries by outcome'),
  problems: z
    .array(z.looseObject({ queryId: z.string(), outcome: z.enum(actOutcomes), why: z.string() }))
    .describe(
      'The first 100 queries with which nothing could be done. Empty in an act of another user, unless the caller may see ' +
        'all queries',
    ),
  startTime: timestamp,
  endTime: timestamp.optional(),
})
export type ActInfo = z.infer<typeof actInfoSchema>
