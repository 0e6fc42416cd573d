import { unreachable } from '../src/shared/unreachable.ts'
import { dashboardNames, type DashboardSpec, type PanelSpec, type Threshold } from './panel.ts'

/** Version of Grafana's dashboard JSON that is written. */
const SCHEMA_VERSION = 42
const PANEL_HEIGHT = 8
const ROW_WIDTH = 24

type Json = Readonly<Record<string, unknown>>

/** A dashboard as Grafana stores it. */
export interface GrafanaDashboard {
  readonly uid: string
  readonly title: string
  readonly description: string
  readonly panels: readonly GrafanaPanel[]
  readonly [key: string]: unknown
}

export interface GrafanaPanel extends DrawnPanel {
  readonly id: number
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
}

interface DrawnPanel {
  readonly type: string
  readonly title: string
  readonly description: string
  readonly datasource: { readonly type: string; readonly uid: string }
  readonly targets: readonly (Json & { readonly refId: string; readonly expr?: string; readonly rawSql?: string })[]
  readonly fieldConfig: { readonly defaults: Json; readonly overrides: readonly Json[] }
  readonly options: Json
  readonly links: readonly Json[]
  readonly transparent: boolean
}

const prometheus = { type: 'prometheus', uid: '${datasource}' }
const postgres = { type: 'grafana-postgresql-datasource', uid: '${postgres}' }

export function toGrafana(spec: DashboardSpec): GrafanaDashboard {
  return {
    uid: `quipu-${spec.name}`,
    title: `Quipu: ${spec.title}`,
    description: spec.question,
    tags: ['quipu'],
    editable: false,
    graphTooltip: 1,
    schemaVersion: SCHEMA_VERSION,
    version: 1,
    timezone: 'browser',
    refresh: '10s',
    time: { from: 'now-1h', to: 'now' },
    annotations: { list: [] },
    links: dashboardNames.filter((name) => name !== spec.name).map((name) => dashboardLink(name, `/d/quipu-${name}`)),
    templating: { list: variables(spec) },
    panels: placed(spec.panels),
  }
}

function variables(spec: DashboardSpec): readonly Json[] {
  const source = (name: string, label: string, type: string): Json => ({
    name,
    label,
    type: 'datasource',
    query: type,
    refresh: 1,
    hide: 0,
    multi: false,
    includeAll: false,
    regex: '',
    options: [],
    // Grafana takes the first of its kind.
    current: { text: '', value: '' },
  })
  const labels = (name: string, label: string, query: string): Json => ({
    name,
    label,
    type: 'query',
    datasource: prometheus,
    query: { query, refId: name },
    refresh: 2,
    sort: 1,
    hide: 0,
    multi: true,
    includeAll: true,
    allValue: '.*',
    regex: '',
    options: [],
    current: { text: 'All', value: '$__all' },
  })
  const text = (name: string, label: string, value: string): Json => ({
    name,
    label,
    type: 'textbox',
    query: value,
    hide: 0,
    options: [{ selected: true, text: value, value }],
    current: { text: value, value },
  })
  return [
    source('datasource', 'Prometheus', 'prometheus'),
    source('postgres', 'Postgres', 'grafana-postgresql-datasource'),
    source('traces', 'Traces', 'tempo'),
    labels('job', 'Job', 'label_values(quipu_build_info, job)'),
    labels('instance', 'Instance', 'label_values(quipu_build_info{job=~"$job"}, instance)'),
    text('quipu', 'Address of Quipu', 'http://localhost:8080'),
    text('runbooks', 'Runbooks', 'docs/runbooks.md'),
    ...(spec.textVariables ?? []).map((one) => text(one.name, one.label, one.value)),
  ]
}

/** From left to right, a new row where one is full. */
function placed(panels: readonly PanelSpec[]): readonly GrafanaPanel[] {
  let x = 0
  let y = 0
  return panels.map((panel, index) => {
    const w = panel.width ?? (panel.kind === 'table' ? ROW_WIDTH : 8)
    if (x + w > ROW_WIDTH) {
      x = 0
      y += PANEL_HEIGHT
    }
    const gridPos = { x, y, w, h: PANEL_HEIGHT }
    x += w
    return { ...drawn(panel), id: index + 1, gridPos }
  })
}

function drawn(panel: PanelSpec): DrawnPanel {
  const common = { title: panel.title, description: panel.description, transparent: false, links: linksOf(panel) }
  if (panel.kind === 'table')
    return {
      ...common,
      type: 'table',
      datasource: postgres,
      targets: [
        { refId: 'A', datasource: postgres, format: 'table', rawQuery: true, rawSql: panel.sql, editorMode: 'code' },
      ],
      fieldConfig: { defaults: { custom: { align: 'auto', filterable: true } }, overrides: columnsOf(panel) },
      options: { showHeader: true, cellHeight: 'sm', frameIndex: 0 },
    }
  const targets = panel.targets.map(({ expr, legend, exemplar }, index) => ({
    refId: String.fromCharCode(65 + index),
    datasource: prometheus,
    expr,
    legendFormat: panel.kind === 'heatmap' ? '{{le}}' : legend,
    editorMode: 'code',
    range: true,
    instant: false,
    format: panel.kind === 'heatmap' ? 'heatmap' : 'time_series',
    ...(exemplar ? { exemplar: true } : {}),
  }))
  const defaults = { unit: panel.unit, thresholds: thresholdsOf(panel.thresholds ?? []) }
  switch (panel.kind) {
    case 'lines':
      return {
        ...common,
        type: 'timeseries',
        datasource: prometheus,
        targets,
        fieldConfig: {
          defaults: {
            ...defaults,
            custom: {
              drawStyle: 'line',
              lineWidth: 1,
              fillOpacity: 10,
              showPoints: 'never',
              spanNulls: false,
              stacking: { mode: 'none', group: 'A' },
              thresholdsStyle: { mode: panel.thresholds ? 'dashed' : 'off' },
            },
            min: 0,
          },
          overrides: [],
        },
        options: {
          legend: { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] },
          tooltip: { mode: 'multi', sort: 'desc' },
        },
      }
    case 'value':
      return {
        ...common,
        type: 'stat',
        datasource: prometheus,
        targets,
        fieldConfig: { defaults, overrides: [] },
        options: {
          reduceOptions: { values: false, calcs: ['lastNotNull'], fields: '' },
          orientation: 'auto',
          textMode: 'auto',
          colorMode: 'value',
          graphMode: 'area',
          justifyMode: 'auto',
        },
      }
    case 'heatmap':
      return {
        ...common,
        type: 'heatmap',
        datasource: prometheus,
        targets,
        fieldConfig: { defaults: { unit: panel.unit }, overrides: [] },
        options: {
          calculate: false,
          yAxis: { unit: 's', axisPlacement: 'left' },
          cellGap: 1,
          color: { mode: 'scheme', scheme: 'Spectral', steps: 64, exponent: 0.5, fill: 'dark-orange', reverse: true },
          tooltip: { mode: 'single', yHistogram: false, showColorScale: true },
          legend: { show: true },
          exemplars: { color: 'rgba(255,0,255,0.7)' },
          rowsFrame: { layout: 'le' },
        },
      }
    default:
      return unreachable(panel)
  }
}

function linksOf(panel: PanelSpec): readonly Json[] {
  if (!panel.link) return []
  const url =
    panel.link === 'runbook' ? '${runbooks}' : `/d/quipu-${panel.link}?\${__url_time_range}&\${job:queryparam}`
  return [dashboardLink(panel.link === 'runbook' ? 'Runbooks' : `More: ${panel.link}`, url)]
}

function dashboardLink(title: string, url: string): Json {
  return {
    type: 'link',
    title,
    url,
    keepTime: true,
    includeVars: true,
    targetBlank: false,
    asDropdown: false,
    icon: 'dashboard',
    tags: [],
    tooltip: '',
  }
}

function thresholdsOf(thresholds: readonly Threshold[]): Json {
  const colors = { amber: 'orange', red: 'red' }
  const below = thresholds.some((one) => one.below)
  const sorted = thresholds.toSorted((a, b) => a.value - b.value)
  // Below: each bound ends its colour, and the next one begins.
  const steps = below
    ? sorted.map((one, index) => ({ color: colors[one.color], value: index === 0 ? null : sorted[index - 1]!.value }))
    : sorted.map((one) => ({ color: colors[one.color], value: one.value }))
  return {
    mode: 'absolute',
    steps: below
      ? [...steps, { color: 'green', value: sorted.at(-1)!.value }]
      : [{ color: 'green', value: null }, ...steps],
  }
}

function columnsOf(panel: Extract<PanelSpec, { kind: 'table' }>): readonly Json[] {
  const column = (name: string, properties: readonly Json[]): Json => ({
    matcher: { id: 'byName', options: name },
    properties,
  })
  const link = (title: string, url: string): Json => ({ id: 'links', value: [{ title, url, targetBlank: true }] })
  return [
    ...(panel.leadsTo.includes('query')
      ? [column('query_id', [link('The query', '${quipu}/ui/query/${__data.fields.query_id}')])]
      : []),
    ...(panel.leadsTo.includes('trace')
      ? [
          column('trace_id', [
            link(
              'The trace',
              '/explore?schemaVersion=1&panes={"t":{"datasource":"${traces}","queries":[{"refId":"A","queryType":"traceql","query":"${__data.fields.trace_id}"}],"range":{"from":"${__from}","to":"${__to}"}}}',
            ),
          ]),
        ]
      : []),
    ...Object.entries(panel.units ?? {}).map(([name, unit]) => column(name, [{ id: 'unit', value: unit }])),
  ]
}
