import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { stringify } from 'yaml'

const run = promisify(execFile)

/** A rule in the format of Prometheus. */
export interface Rule {
  readonly record?: string
  readonly alert?: string
  readonly expr: string
  readonly for?: string
  readonly labels?: Readonly<Record<string, string>>
}

export interface RuleTest {
  readonly name: string
  readonly alert_rule_test?: readonly { readonly alertname: string }[]
  readonly promql_expr_test?: readonly { readonly expr: string }[]
}

export interface RuleMutant {
  readonly what: string
  /** The index in the list of rules. */
  readonly index: number
  readonly rule: Rule
}

const COMPARED = / (>=|<=|==|!=|>|<) (?=[\w.(])/g
const FLIPPED: Readonly<Record<string, string>> = { '>': '<', '<': '>', '>=': '<', '<=': '>', '==': '!=', '!=': '==' }

/** All likely mistakes in a rule: changed bounds, directions, waits, filters, groups, halves of an `and`. */
export function mutantsOf(rule: Rule, index: number): readonly RuleMutant[] {
  const exprs: [string, string][] = []
  const { expr } = rule
  const replaced = (what: string, at: number, length: number, by: string): void =>
    void exprs.push([what, expr.slice(0, at) + by + expr.slice(at + length)])

  for (const match of expr.matchAll(COMPARED))
    replaced(`turns ${match[1]} around`, match.index, match[0].length, ` ${FLIPPED[match[1]!]} `)
  for (const match of expr.matchAll(/ (>|<) (\d+(?:\.\d+)?)(?![\w.])/g)) {
    const bound = Number(match[2])
    const at = match.index + match[0].length - match[2]!.length
    if (bound === 0) {
      replaced('lets > 0 be > 1000000', at, match[2]!.length, '1000000')
      replaced('lets > 0 be >= 0', match.index, match[0].length, ` ${match[1]}= 0`)
    } else {
      replaced('has ten times the bound', at, match[2]!.length, String(bound * 10))
      replaced('has a tenth of the bound', at, match[2]!.length, String(bound / 10))
    }
  }
  for (const match of expr.matchAll(/histogram_quantile\(0\.99/g))
    replaced('asks for the least', match.index, match[0].length, 'histogram_quantile(0.01')
  // A filter on a label, with its comma.
  for (const match of expr.matchAll(/,?(\w+)(=~|!~|!=|=)"[^"]*"/g))
    if (match[1] !== 'le') replaced(`filters no ${match[1]}`, match.index, match[0].length, '')
  for (const match of expr.matchAll(/ by \([\w, ]+\)/g))
    if (!match[0].includes('le')) replaced('groups by nothing', match.index, match[0].length, '')
  for (const match of expr.matchAll(/ \/ (?=[(\w])/g)) replaced('multiplies', match.index, match[0].length, ' * ')
  const halves = expr.split(' and ')
  if (halves.length > 1)
    for (const left of halves.keys())
      exprs.push([`asks no half ${left + 1}`, halves.filter((_, half) => half !== left).join(' and ')])

  const mutants = exprs
    // The removal of the first filter leaves a comma.
    .map(([what, text]) => [what, text.replaceAll('{,', '{')] as const)
    .map(([what, text]) => ({ what, index, rule: { ...rule, expr: text } }))
  const more: RuleMutant[] = []
  if (rule.for !== undefined) {
    if (rule.for !== '0s') more.push({ what: 'does not wait', index, rule: { ...rule, for: '0s' } })
    more.push({ what: 'waits for days', index, rule: { ...rule, for: '10d' } })
  }
  if (rule.labels?.['severity'])
    more.push({ what: 'has another severity', index, rule: { ...rule, labels: { ...rule.labels, severity: 'info' } } })
  return [...mutants, ...more]
}

/**
 * Runs the tests that concern each mutant, all in one `promtool`.
 * @returns the mutants that no test noticed
 */
export async function survivors(
  promtool: string,
  rules: readonly Rule[],
  tests: readonly RuleTest[],
  mutants: readonly RuleMutant[],
): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'quipu-mutants-'))
  try {
    const alive: string[] = []
    const files: string[] = []
    const names = new Map<string, string>()
    for (const [number, { what, index, rule }] of mutants.entries()) {
      const name = `${rules[index]!.alert ?? rules[index]!.record} ${rule.labels?.['window'] ?? ''} ${what}`
      const mutated = rules.map((one, at) => (at === index ? rule : one))
      const own = testsOf(rules[index]!, mutated, tests)
      if (own.length === 0) {
        alive.push(`${name}: no test`)
        continue
      }
      const needed = neededBy(own, mutated)
      const groups = [
        { name: 'records', interval: '1m', rules: needed.filter((one) => one.record !== undefined) },
        { name: 'alerts', interval: '15s', rules: needed.filter((one) => one.alert !== undefined) },
      ]
      await writeFile(join(folder, `rules-${number}.yaml`), stringify({ groups }, { aliasDuplicateObjects: false }))
      const test = { rule_files: [`rules-${number}.yaml`], evaluation_interval: '1m', tests: own }
      await writeFile(join(folder, `test-${number}.yaml`), stringify(test, { aliasDuplicateObjects: false }))
      files.push(`test-${number}.yaml`)
      names.set(`test-${number}.yaml`, name)
    }
    const { stdout, stderr } = await run(promtool, ['test', 'rules', ...files], {
      cwd: folder,
      maxBuffer: 1 << 27,
    }).catch((failed: { stdout: string; stderr: string }) => failed)
    const reported = `${stdout}\n${stderr}`.split('Unit Testing:').slice(1)
    if (reported.length !== files.length)
      throw new Error(`promtool reported ${reported.length} of ${files.length} mutants`)
    for (const one of reported) {
      const file = one.trim().split(/\s/)[0]!
      if (one.includes('SUCCESS')) alive.push(names.get(file) ?? file)
    }
    return alive
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** The tests that use a rule, or a rule that is computed from it. */
function testsOf(rule: Rule, rules: readonly Rule[], tests: readonly RuleTest[]): readonly RuleTest[] {
  const asked = new Set<string>([rule.alert ?? rule.record!])
  for (let before = -1; before !== asked.size;) {
    before = asked.size
    for (const one of rules)
      if (one.alert !== rule.alert || one.alert === undefined)
        if ([...asked].some((name) => name.includes(':') && mentions(one.expr, name)))
          asked.add(one.alert ?? one.record!)
  }
  return tests.filter(
    ({ alert_rule_test: ofAlerts = [], promql_expr_test: ofRecords = [] }) =>
      ofAlerts.some(({ alertname }) => asked.has(alertname)) ||
      ofRecords.some(({ expr }) => [...asked].some((name) => mentions(expr, name))),
  )
}

/** The rules from which the alerts of these tests are computed, in order. */
function neededBy(tests: readonly RuleTest[], rules: readonly Rule[]): readonly Rule[] {
  const texts = tests.flatMap((one) => (one.promql_expr_test ?? []).map(({ expr }) => expr))
  const alerts = new Set(tests.flatMap((one) => (one.alert_rule_test ?? []).map(({ alertname }) => alertname)))
  const needed = new Set(rules.filter((one) => one.alert !== undefined && alerts.has(one.alert)))
  for (let before = -1; before !== needed.size;) {
    before = needed.size
    for (const one of rules)
      if (
        one.record !== undefined &&
        [...texts, ...[...needed].map(({ expr }) => expr)].some((text) => mentions(text, one.record!))
      )
        needed.add(one)
  }
  return rules.filter((one) => needed.has(one))
}

function mentions(expr: string, name: string): boolean {
  const at = expr.indexOf(name)
  return at >= 0 && !/[\w:]/.test(expr[at + name.length] ?? '')
}
