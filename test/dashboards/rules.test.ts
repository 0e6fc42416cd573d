import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { alerts } from '../../dashboards/alerts.ts'
import { testedAlerts } from '../../dashboards/alert-tests.ts'
import { mutantsOf, survivors, type Rule, type RuleTest } from '../support/rule-mutants.ts'
import { findPrometheus, type PrometheusPrograms } from '../support/prometheus.ts'

const run = promisify(execFile)
const cwd = fileURLToPath(new URL('../../dashboards/rules', import.meta.url))
let programs: PrometheusPrograms | undefined

beforeAll(async () => {
  programs = await findPrometheus()
})

describe('The Prometheus rules', () => {
  it('have for each alert a test case in which it fires, and another in which it is silent', () => {
    const names = [...new Set(alerts.map(({ alert }) => alert))].toSorted()
    const { firing, silent } = testedAlerts()
    expect(firing.toSorted()).toEqual(names)
    expect(silent.toSorted()).toEqual(names)
  })

  it('are accepted by promtool', async ({ skip }) => {
    if (!programs) return skip()
    const { stdout } = await run(programs.promtool, ['check', 'rules', 'quipu.yaml'], { cwd })
    expect(stdout).toContain('SUCCESS')
  })

  it('fit the provisioned configuration of Prometheus', async ({ skip }) => {
    if (!programs) return skip()
    const { stdout } = await run(
      programs.promtool,
      ['check', 'config', '--syntax-only', '../provisioning/prometheus/quipu.yaml'],
      { cwd },
    )
    expect(stdout).toContain('SUCCESS')
  })

  it('pass their test cases in promtool', { timeout: 180_000 }, async ({ skip }) => {
    if (!programs) return skip()
    // The error shows the differences.
    const { stdout } = await run(programs.promtool, ['test', 'rules', 'quipu.test.yaml'], { cwd, maxBuffer: 1 << 24 })
    expect(stdout).toContain('SUCCESS')
  })

  it('fail their test cases after any small change of a rule (mutants)', { timeout: 600_000 }, async ({ skip }) => {
    if (!programs) return skip()
    const { groups } = parse(await readFile(`${cwd}/quipu.yaml`, 'utf8')) as { groups: { rules: Rule[] }[] }
    const { tests } = parse(await readFile(`${cwd}/quipu.test.yaml`, 'utf8')) as { tests: RuleTest[] }
    const rules = groups.flatMap((group) => group.rules)
    const all = rules.flatMap(mutantsOf)
    // `npm run mutants` takes minutes, because error budgets span days. This test takes a fixed sample of the other rules.
    const only = process.env['QUIPU_MUTANTS']
    const mutants = only
      ? all.filter(({ rule }) => new RegExp(only).test(`${rule.alert ?? rule.record}`))
      : all.filter(
          ({ rule }, index) => rule.record === undefined && rule.labels?.['window'] === undefined && index % 3 === 0,
        )
    expect(mutants.length).toBeGreaterThan(20)
    expect(await survivors(programs.promtool, rules, tests, mutants)).toEqual([])
  })
})
