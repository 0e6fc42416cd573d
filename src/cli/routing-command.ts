import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { decideRoute, tryRule } from '../coordinator/clusters/routing/decide-route.ts'
import {
  routeText,
  type GroupCatalogs,
  type RemoteCatalogs,
  type RoutedStatement,
} from '../coordinator/clusters/routing/route.ts'
import { readRoutingRules, type RoutingRule, type RuleMatch } from '../coordinator/clusters/routing/routing-rules.ts'
import { EngineError, ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { sizeBytes, sizeOfBytes } from '../shared/quantities.ts'
import { wrongFlags } from './command-flags.ts'
import { tableFormat } from './table-text.ts'

const USAGE = `usage: quipu routing check FILE [options]

Checks a file of routing rules (setting routingRulesFile). With a statement, which the options describe, it also says
which rule decides, and why each rule before it does not. No server needs to run.

  --user <name>            the user of the statement
  --user-group <name>      a group of the user; may be given several times
  --source <text>          the source that the client names
  --client-tag <text>      a tag of the client; may be given several times
  --type <name>            the type of the statement: SELECT, INSERT, DATA_DEFINITION …
  --resource-group <path>  its resource group, such as all.etl
  --catalog <name>         a catalog that it uses; may be given several times
  --writes <name>          a catalog that it uses and changes; may be given several times
  --bytes <size>           the data that it reads, such as 20GB; without it the size is not known
  --unresolved             it uses tables that Quipu cannot find out

  --local <catalog,…>           the catalogs of this server
  --group <name>=<catalog,…>    the catalogs of a group; may be given several times
  --cluster <name>=<catalog,…>  the catalogs of a cluster; may be given several times

Without the last three every target has all catalogs. A catalog of --local that a group or cluster has too is a mirror.
Exit code 0: the file is valid, and the statement has a route. 1: the statement has no route. 64: the file is wrong; the
message names the line.
`

const NO_ROUTE = 1

/**
 * `quipu routing check`: checks a file of routing rules, and shows how it routes a statement.
 * @returns the exit code
 * @throws ExitError 64 when the file or a flag is wrong
 */
export function routingCommand(argv: readonly string[]): number {
  if (argv.includes('--help')) {
    process.stdout.write(USAGE)
    return 0
  }
  const { values, positionals } = parse(argv)
  const [action, file, ...rest] = positionals
  if (action !== 'check' || file === undefined || rest.length > 0)
    throw new ExitError(exitCodes.configuration, 'quipu routing check takes one file; see quipu routing --help')
  const rules = rulesOf(file)
  const { local: _local, group: _group, cluster: _cluster, ...described } = values
  if (Object.keys(described).length === 0) {
    const { length } = rules
    process.stdout.write(`${length} ${length === 1 ? 'rule' : 'rules'}, valid\n`)
    return 0
  }
  const statement = statementOf(values)
  return show(rules, statement, targetsOf(values, rules, statement.catalogs))
}

type Flags = ReturnType<typeof parse>['values']

function parse(argv: readonly string[]) {
  const text = { type: 'string' } as const
  const texts = { type: 'string', multiple: true } as const
  try {
    return parseArgs({
      args: [...argv],
      options: {
        user: text,
        'user-group': texts,
        source: text,
        'client-tag': texts,
        type: text,
        'resource-group': text,
        catalog: texts,
        writes: texts,
        bytes: text,
        unresolved: { type: 'boolean' },
        local: text,
        group: texts,
        cluster: texts,
      },
      allowPositionals: true,
      strict: true,
    })
  } catch (error) {
    throw wrongFlags(error, 'quipu routing')
  }
}

function rulesOf(file: string): readonly RoutingRule[] {
  try {
    return readRoutingRules(readFileSync(file, 'utf8')).rules
  } catch (error) {
    throw new ExitError(exitCodes.configuration, `${file}: ${(error as Error).message}`)
  }
}

function statementOf(flags: Flags): RoutedStatement {
  const bytes = flags.bytes === undefined ? undefined : sizeBytes(flags.bytes)
  if (flags.bytes !== undefined && bytes === undefined)
    throw new ExitError(exitCodes.configuration, `--bytes: '${flags.bytes}' is not a data size, such as 20GB`)
  const written = flags.writes ?? []
  return {
    user: flags.user ?? '',
    groups: flags['user-group'] ?? [],
    source: flags.source,
    clientTags: flags['client-tag'] ?? [],
    queryType: flags.type?.toUpperCase(),
    resourceGroup: flags['resource-group'] ?? '',
    catalogs: [...new Set([...(flags.catalog ?? []), ...written])],
    written,
    unresolved: flags.unresolved ?? false,
    bytes: () => bytes,
  }
}

/** The targets of the flags. If no flag describes a target, every target of a rule has all catalogs. */
function targetsOf(
  { local, group, cluster }: Flags,
  rules: readonly RoutingRule[],
  catalogs: readonly string[],
): GroupCatalogs {
  if (local === undefined && group === undefined && cluster === undefined) {
    const all: RemoteCatalogs = { own: new Set(catalogs), mirrors: new Set() }
    const routes = rules.flatMap(({ route, fallback }) => (fallback ? [route, fallback] : [route]))
    return {
      local: all.own,
      groups: new Map(routes.flatMap((one) => (one.to === 'group' ? [[one.group, all]] : []))),
      clusters: new Map(routes.flatMap((one) => (one.to === 'cluster' ? [[one.cluster, all]] : []))),
    }
  }
  const here = new Set(namesIn(local ?? ''))
  return { local: here, groups: remoteOf('group', group, here), clusters: remoteOf('cluster', cluster, here) }
}

/** @throws ExitError 64 for a text without a name before `=` */
function remoteOf(
  flag: string,
  texts: readonly string[] = [],
  local: ReadonlySet<string>,
): ReadonlyMap<string, RemoteCatalogs> {
  return new Map(
    texts.map((text) => {
      const [, target, list] = /^([^=]+)=(.*)$/.exec(text) ?? []
      if (target === undefined || list === undefined)
        throw new ExitError(exitCodes.configuration, `--${flag}: '${text}' is not of the form name=catalog,catalog`)
      const names = namesIn(list)
      const mirrors = new Set(names.filter((name) => local.has(name)))
      return [target, { own: new Set(names.filter((name) => !local.has(name))), mirrors }]
    }),
  )
}

function namesIn(list: string): readonly string[] {
  return list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

/** Prints what each rule does with the statement, and the route. @returns the exit code */
function show(rules: readonly RoutingRule[], statement: RoutedStatement, targets: GroupCatalogs): number {
  let decided = false
  const lines = rules.map((rule) => {
    if (decided) return [rule.name, 'is not reached']
    const outcome = tryRule(rule, statement, targets)
    switch (outcome.kind) {
      case 'misfit':
        return [rule.name, `does not fit: ${misfitText(outcome.key, statement)}`]
      case 'skipped':
        return [rule.name, `is skipped: ${outcome.why}`]
      case 'runs here':
        decided = true
        return [rule.name, `is skipped: ${outcome.why}. The statement runs here`]
      case 'decides':
        decided = true
        return [rule.name, outcome.fallbackFault === undefined ? 'decides' : `decides; ${outcome.fallbackFault}`]
    }
  })
  const format = tableFormat(
    [
      { name: 'rule', type: 'varchar' },
      { name: 'outcome', type: 'varchar' },
    ],
    lines,
  )
  process.stdout.write(`${[format.header(), ...lines.map((line) => format.row(line))].join('\n')}\n\n`)
  try {
    const { route, rule, fallback, grade } = decideRoute(rules, statement, targets)
    const by = rule === undefined ? 'no rule decides' : `by rule '${rule}'`
    const unchecked = grade === 'unchecked' ? ', unchecked' : ''
    const or = fallback ? `, else ${routeText(fallback)}` : ''
    process.stdout.write(`Route: ${routeText(route)}${or}${unchecked} (${by})\n`)
    return 0
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
    process.stdout.write(`No route: ${error.errorName}: ${error.message}\n`)
    return NO_ROUTE
  }
}

/** The statement's value for a condition that does not hold. */
function misfitText(key: keyof RuleMatch, statement: RoutedStatement): string {
  switch (key) {
    case 'percent':
      return `percent: the user '${statement.user}' is not among them`
    case 'bytesOver': {
      const bytes = statement.bytes()
      return `bytesOver: ${bytes === undefined ? 'the size is not known' : sizeOfBytes(bytes).shown}`
    }
    case 'userGroup':
      return `userGroup: ${statement.groups.join(', ') || 'none'}`
    case 'clientTags':
    case 'catalogs':
      return `${key}: ${statement[key].join(', ') || 'none'}`
    case 'user':
    case 'source':
    case 'resourceGroup':
    case 'queryType':
      return `${key}: ${statement[key] ?? 'none'}`
  }
}
