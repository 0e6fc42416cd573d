import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { alerts } from '../../dashboards/alerts.ts'
import { recordingRules } from '../../dashboards/recording-rules.ts'
import { dashboards, files } from '../../dashboards/files.ts'
import { toGrafana, type GrafanaPanel } from '../../dashboards/grafana.ts'
import { metricNames } from '../../src/telemetry/metric-names.ts'
import type { MetricDefinition } from '../../src/telemetry/metrics/metric-definition.ts'

const folder = new URL('../../dashboards/', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, folder), 'utf8')

// To update the files: npm run dashboards
it.each([...files()])('dashboards/%s equals the output of its code', (name, text) => {
  expect(parse(read(name))).toEqual(parse(text))
})

describe.each(dashboards.map((spec) => [spec.name, toGrafana(spec)] as const))('dashboard %s', (name, dashboard) => {
  it('has a uid, a question as description, and panels with unique ids and titles, descriptions and units', () => {
    expect(dashboard.uid).toBe(`quipu-${name}`)
    expect(dashboard.description).toMatch(/\?$/)
    const { panels } = dashboard
    expect(new Set(panels.map((panel) => panel.id)).size).toBe(panels.length)
    expect(new Set(panels.map((panel) => panel.title)).size).toBe(panels.length)
    for (const panel of panels) {
      expect(panel.description.length, panel.title).toBeGreaterThan(20)
      expect(panel.targets.length, panel.title).toBeGreaterThan(0)
      if (panel.type !== 'table') expect(panel.fieldConfig.defaults['unit'], panel.title).toBeDefined()
    }
  })

  it('names data sources by variables only', () => {
    for (const panel of dashboard.panels) expect(panel.datasource.uid).toMatch(/^\$\{\w+\}$/)
    expect(JSON.stringify(dashboard)).not.toMatch(/"datasource":"(?!\$)/)
  })

  it('places its panels without overlap and within the width', () => {
    const taken = new Set<string>()
    for (const { gridPos } of dashboard.panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        const position = `${x}/${gridPos.y}`
        expect(taken.has(position), position).toBe(false)
        taken.add(position)
      }
    }
  })

  it('requests exemplars only for metrics that have them', () => {
    for (const target of dashboard.panels.flatMap((panel) => panel.targets)) {
      if (target['exemplar'] !== true) continue
      const used = Object.values<MetricDefinition>(metricNames).filter(({ text }) => target.expr?.includes(text))
      expect(
        used.some((metric) => metric.exemplars),
        target.expr,
      ).toBe(true)
    }
  })
})

describe('Panels and rules', () => {
  const expressions = dashboards
    .flatMap((spec) => toGrafana(spec).panels.flatMap((panel: GrafanaPanel) => panel.targets))
    .map((target) => target.expr ?? '')
  const all = [...expressions, ...recordingRules.map(({ expr }) => expr), ...alerts.map(({ expr }) => expr)]

  it('use only existing metrics', () => {
    const names = new Set(Object.values<MetricDefinition>(metricNames).map(({ text }) => text))
    for (const expr of all)
      for (const [used] of expr.matchAll(/(?<![:\w])quipu_[a-z0-9_]+(?![:\w])/g))
        expect(names.has(used) || names.has(used.replace(/_(count|sum|bucket)$/, '')), `${used} in ${expr}`).toBe(true)
  })

  it('use only existing recorded series', () => {
    const records = new Set(recordingRules.map(({ record }) => record))
    for (const expr of all)
      for (const [used] of expr.matchAll(/\b(?:quipu|route|phase|group):[\w:]+/g)) expect(records).toContain(used)
  })

  it('use every metric', () => {
    const unread = Object.values<MetricDefinition>(metricNames)
      .filter(({ text }) => !all.some((expr) => new RegExp(`\\b${text}(_bucket|_sum|_count)?\\b`).test(expr)))
      .map(({ text }) => text)
    expect(unread).toEqual([])
  })

  it('have a section in the runbook for every alert', () => {
    const headings = [
      ...readFileSync(new URL('../../docs/runbooks.md', import.meta.url), 'utf8').matchAll(/^## (.+)$/gm),
    ]
      .map(([, heading]) => heading)
      .filter((heading) => heading?.startsWith('Quipu'))
    expect(headings.toSorted()).toEqual([...new Set(alerts.map(({ alert }) => alert))].toSorted())
  })
})
