import { readFileSync } from 'node:fs'
import { Ajv, type ValidateFunction } from 'ajv'
import { describe, expect, it } from 'vitest'
import { dashboards } from '../../dashboards/files.ts'
import { toGrafana, type GrafanaPanel } from '../../dashboards/grafana.ts'

const path = new URL('../fixtures/grafana/dashboard-schema.json', import.meta.url)
const ajv = new Ajv({ strict: false, allErrors: true }).addSchema(
  JSON.parse(readFileSync(path, 'utf8')) as object,
  'grafana',
)

function validator(definition: string): ValidateFunction {
  const validate = ajv.getSchema(`grafana#/definitions/${definition}`)
  if (!validate) throw new Error(`The schema has no ${definition}`)
  return validate
}

const panelSchemas: Readonly<Record<string, string>> = {
  timeseries: 'TimeseriesPanel',
  stat: 'StatPanel',
  table: 'TablePanel',
  heatmap: 'HeatmapPanel',
}

function faultsOf(panel: GrafanaPanel): unknown {
  const validate = validator(panelSchemas[panel.type] ?? panel.type)
  return validate(panel) ? [] : validate.errors
}

describe.each(dashboards.map((spec) => [spec.name, toGrafana(spec)] as const))('dashboard %s', (_name, dashboard) => {
  it("conforms to Grafana's schema", () => {
    const { panels: _panels, ...shell } = dashboard
    const validate = validator('DashboardWithoutPanels')
    expect(validate(shell), JSON.stringify(validate.errors)).toBe(true)
  })

  it.each(dashboard.panels.map((panel) => [panel.title, panel] as const))(
    'conforms to the schema in the panel %s',
    (_title, panel) => {
      expect(faultsOf(panel)).toEqual([])
    },
  )
})

it('the schema of Grafana refuses unknown options of a panel', () => {
  const panel = toGrafana(dashboards[0]!).panels.find(({ type }) => type === 'timeseries')!
  expect(faultsOf(panel)).toEqual([])
  expect(faultsOf({ ...panel, options: { ...panel.options, legends: {} } })).not.toEqual([])
  expect(faultsOf({ ...panel, options: { ...panel.options, legend: { displayMode: 'lost' } } })).not.toEqual([])
  const { defaults } = panel.fieldConfig
  const custom = { ...(defaults['custom'] as object), drawStyle: 'lines' }
  expect(faultsOf({ ...panel, fieldConfig: { overrides: [], defaults: { ...defaults, custom } } })).not.toEqual([])
})
