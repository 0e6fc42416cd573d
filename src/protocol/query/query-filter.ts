import { z } from 'zod'
import type { KnownQuery } from '../../coordinator/query/stream/state.ts'
import type { QueryFilter } from '../../readmodels/queries/queries.ts'
import { parseTableName, type QualifiedTable } from '../../shared/table-name.ts'
import { queryStates } from './query-states.ts'
import { storableTime } from './storable-time.ts'

/** A search text for the database, which has no text with U+0000. */
const searched = z.string().refine((text) => !text.includes('\0'), 'has a character that is not allowed in text')

const time = z.iso
  .datetime({ offset: true })
  .transform(storableTime)
  .refine((text) => text !== undefined, 'is not an ISO 8601 time')

/** `catalog.schema.table`; a name with a dot is in double quotes. */
const table = searched.transform((text, context): QualifiedTable => {
  const name = parseTableName(text)
  if (!name) context.addIssue({ code: 'custom', message: 'is not a name of the form catalog.schema.table' })
  return name ?? { catalog: '', schema: '', table: '' }
})

/** Parameters that choose queries; all of them must hold. */
export const filterParameters = {
  state: z
    .string()
    .transform((text) => text.toUpperCase().split(','))
    .pipe(z.array(z.enum(queryStates)))
    .optional(),
  user: searched.optional(),
  source: searched.optional(),
  app: searched.optional(),
  appObject: searched.optional(),
  appUser: searched.optional(),
  resourceGroup: searched.optional(),
  group: searched.optional(),
  tag: searched.optional(),
  queryType: searched.optional(),
  plan: searched.optional(),
  cluster: searched.optional(),
  error: searched.optional(),
  fingerprint: searched.optional(),
  table: table.optional(),
  since: time.optional(),
  until: time.optional(),
  q: searched.min(1).optional(),
} as const

const parameters = z.object(filterParameters)
export type WantedQueries = z.output<typeof parameters>

export function filterOf(wanted: WantedQueries): QueryFilter {
  const { state, user, source, app, appObject, appUser, resourceGroup, queryType, plan, cluster, error } = wanted
  const { group, tag, fingerprint, since, until, q } = wanted
  const equal = defined({
    user_name: user,
    source,
    app,
    app_object: appObject,
    app_user: appUser,
    resource_group: resourceGroup,
    query_type: queryType,
    route: plan,
    cluster,
    error_name: error,
    fingerprint,
  })
  return {
    equal,
    ...(state && { states: state }),
    ...(wanted.table && { table: wanted.table }),
    ...defined({ group, tag, since, until, text: q }),
  }
}

function defined<K extends string>(values: Readonly<Record<K, string | undefined>>): Partial<Record<K, string>> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<
    Record<K, string>
  >
}

/** Whether a query reads or writes a table, or reads a view. */
export function uses(
  { planned }: Pick<KnownQuery, 'planned'>,
  { catalog, schema, table: name }: QualifiedTable,
): boolean {
  if (!planned) return false
  const views = (planned.views ?? []).map((one) => ({ ...one, table: one.view }))
  return [...planned.tables, ...views].some(
    (one) => one.catalog === catalog && one.schema === schema && one.table === name,
  )
}
