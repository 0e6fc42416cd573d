import type { QuerySession } from '../../coordinator/query/stream/events.ts'

/**
 * The program behind a statement, and the object and the user of that program that caused it. They come from comments,
 * client info, tags and the source, so the client may claim anything.
 */
export interface ClientApp {
  readonly app: string
  /** Such as `model.shop.orders` of dbt, `dashboard:5/card:7` of Metabase, `dag:etl/task:load` of Airflow. */
  readonly object?: string | undefined
  readonly user?: string | undefined
}

type Sent = Pick<QuerySession, 'source' | 'clientInfo' | 'clientTags' | 'userAgent'>

/** Limits, in characters: an index holds the first, and nobody reads more of the others. */
const LONGEST = { app: 100, object: 500, user: 200 } as const

/**
 * Finds the program that sent a statement: first by a comment of the program, then by client info, tags, source and
 * user agent.
 * @param sql the recorded text, without secrets
 */
export function clientApp(sql: string, session: Sent): ClientApp | undefined {
  const { clientInfo } = session
  const found =
    firstOf(outerComments(sql), appOfComment) ??
    (clientInfo === undefined ? undefined : appOfInfo(clientInfo)) ??
    appOfNames(session)
  return (
    found && {
      app: found.app.slice(0, LONGEST.app),
      object: found.object?.slice(0, LONGEST.object),
      user: found.user?.slice(0, LONGEST.user),
    }
  )
}

function firstOf<T, R>(items: Iterable<T>, find: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

/** Limits of the search in a text, which may be a megabyte. */
const MOST_COMMENTS = 8
const LONGEST_COMMENT = 4096

const LEADING = /\s*(?:--([^\n]*)(?:\n|$)|\/\*([\s\S]*?)\*\/)/y

/** Blanks and semicolons at the end. A match begins with the first of them only, so that a search takes linear time. */
const TRAILING = /(?<![\s;])[\s;]+$/

/** The texts of the comments before a statement, then that of a comment behind it. */
function* outerComments(sql: string): Generator<string> {
  const leading = new RegExp(LEADING)
  for (let count = 0; count < MOST_COMMENTS; count++) {
    const match = leading.exec(sql)
    if (!match) break
    yield (match[1] ?? match[2]!).slice(0, LONGEST_COMMENT).trim()
  }
  const end = sql.slice(-LONGEST_COMMENT).replace(TRAILING, '')
  if (end.endsWith('*/')) {
    const start = end.lastIndexOf('/*')
    if (start >= 0) yield end.slice(start + 2, -2).trim()
    return
  }
  const lastLine = end.slice(end.lastIndexOf('\n') + 1)
  const dashes = lastLine.indexOf('--')
  if (dashes >= 0) yield lastLine.slice(dashes + 2).trim()
}

function appOfComment(comment: string): ClientApp | undefined {
  if (comment.startsWith('{')) return appOfJson(comment)
  if (/^Metabase\b/.test(comment)) return metabase(comment)
  if (/\bQuery Hash: /.test(comment)) return redash(comment)
  return sqlCommenter(comment)
}

/** Client info is JSON (Airflow, Lightdash and others) or text. */
function appOfInfo(info: string): ClientApp | undefined {
  if (info.trimStart().startsWith('{')) return appOfJson(info)
  return /\bQuery Hash: /.test(info) ? redash(info) : undefined
}

type Facts = Readonly<Record<string, unknown>>

function appOfJson(text: string): ClientApp | undefined {
  const facts = parsedObject(text)
  if (!facts) return undefined
  const fact = (...names: readonly string[]): string | undefined => firstOf(names, (name) => textOf(facts[name]))
  if (fact('dag_id'))
    return { app: 'airflow', object: path(facts, { dag: 'dag_id', task: 'task_id' }), user: fact('dag_owner') }
  if (fact('organization_uuid') && fact('project_uuid'))
    return {
      app: 'lightdash',
      object: path(facts, { dashboard: 'dashboard_uuid', chart: 'chart_uuid', explore: 'explore_name' }),
      user: fact('user_uuid'),
    }
  const app = fact('app', 'application') ?? (fact('dbt_version') && 'dbt')
  if (app === undefined) return undefined
  return {
    app: app.toLowerCase(),
    object: fact('node_id', 'object') ?? path(facts, { dashboard: 'dashboard_id', chart: 'chart_id' }),
    user: fact('user', 'username', 'email'),
  }
}

/** Names the facts that are there: `dashboard:5/card:7`. */
function path(facts: Facts, names: Readonly<Record<string, string>>): string | undefined {
  const parts = Object.entries(names).flatMap(([kind, name]) => {
    const text = textOf(facts[name])
    return text === undefined ? [] : [`${kind}:${text}`]
  })
  return parts.length > 0 ? parts.join('/') : undefined
}

function textOf(value: unknown): string | undefined {
  return (typeof value === 'string' && value !== '') || typeof value === 'number' ? String(value) : undefined
}

function parsedObject(text: string): Facts | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Facts) : undefined
  } catch {
    return undefined
  }
}

/** `Metabase:: userID: 1 queryType: native queryHash: 1da2 dashboardID: 5 cardID: 7` */
function metabase(comment: string): ClientApp {
  const facts = Object.fromEntries([...comment.matchAll(/\b(\w{1,60}): (\S+)/g)].map((match) => [match[1]!, match[2]]))
  return {
    app: 'metabase',
    object: path(facts, { dashboard: 'dashboardID', card: 'cardID' }) ?? path(facts, { query: 'queryHash' }),
    user: textOf(facts['userID']),
  }
}

/** `Username: ana@example.com, query_id: 12, Queue: queries, Job ID: …, Query Hash: …, Scheduled: False` */
function redash(comment: string): ClientApp {
  const facts = Object.fromEntries(
    comment.split(/, (?=[A-Za-z_ ]+: )/).map((part) => {
      const at = part.indexOf(': ')
      return [part.slice(0, at).toLowerCase(), part.slice(at + 2).trim()]
    }),
  )
  return { app: 'redash', object: path(facts, { query: 'query_id' }), user: textOf(facts['username']) }
}

/**
 * `application='shop',controller='orders',action='list'`, with values as in URLs.
 * Source of the format: google.github.io/sqlcommenter.
 */
function sqlCommenter(comment: string): ClientApp | undefined {
  const facts = Object.fromEntries(
    [...comment.matchAll(/\b(\w{1,60})='((?:[^'\\]|\\.)*)'/g)].map((match) => [match[1]!, decoded(match[2]!)]),
  )
  const app = textOf(facts['application']) ?? textOf(facts['app'])
  return app !== undefined
    ? {
        app: app.toLowerCase(),
        object: textOf(facts['route']) ?? path(facts, { controller: 'controller', action: 'action' }),
        user: textOf(facts['user']),
      }
    : undefined
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Programs by their source or user agent. The first that fits counts. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^dbt\b/i, 'dbt'],
  [/\bmetabase\b/i, 'metabase'],
  [/\blightdash\b/i, 'lightdash'],
  [/\bredash\b/i, 'redash'],
  [/\bairflow\b/i, 'airflow'],
  [/\bsuperset\b/i, 'superset'],
  [/\bgrafana\b/i, 'grafana'],
  [/\bmcp\b/i, 'mcp'],
  [/\bdbeaver\b/i, 'dbeaver'],
  [/\bdatagrip\b/i, 'datagrip'],
  [/\btableau\b/i, 'tableau'],
  [/power ?bi\b|\bMicrosoft\.Mashup/i, 'power-bi'],
  [/\blooker\b/i, 'looker'],
  [/^quipu(?: (?:query|console|replay))?$/, 'quipu'],
  [/^(?:trino|presto)-cli\b/i, 'trino-cli'],
  [/\bsqlalchemy\b/i, 'sqlalchemy'],
]

/** Libraries. They are tried last, because they say little about the program that uses them. */
const LIBRARIES: readonly (readonly [RegExp, string])[] = [
  [/^(?:trino|presto)-jdbc\b|\bTrino JDBC Driver\b/i, 'trino-jdbc'],
  [/^(?:trino|presto)-odbc\b|\bODBC\b/i, 'trino-odbc'],
  [/^trino-python-client\b/i, 'trino-python'],
  [/\btrino-go-client\b/i, 'trino-go'],
  [/^trino-js-client\b/i, 'trino-js'],
]

function appOfNames({ source, clientInfo, clientTags, userAgent }: Sent): ClientApp | undefined {
  const texts = [source, ...clientTags, userAgent].filter((text) => text !== undefined)
  const app = firstOf([NAMES, LIBRARIES], (names) =>
    firstOf(texts, (text) => names.find(([form]) => form.test(text))?.[1]),
  )
  switch (app) {
    case undefined:
      return undefined
    case 'mcp':
      // Servers of agents send the name of their user as the client info.
      return { app, user: clientInfo }
    case 'dbeaver': {
      // `DBeaver 24.1.0 - SQLEditor <Script-1.sql>`
      const object = source?.includes(' - ') === true ? source.slice(source.indexOf(' - ') + 3) : undefined
      return { app, object }
    }
    default:
      return { app }
  }
}
