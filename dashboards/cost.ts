import {
  costByApp,
  costByCluster,
  costByGroup,
  costByTable,
  costByUser,
  dearestQueries,
  dearestShapes,
} from './cost-tables.ts'
import { lines, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'

export const cost: DashboardSpec = {
  name: 'cost',
  title: 'cost',
  question: 'Which users, programs and tables cause the cost?',
  panels: [
    lines('CPU by resource group', 'CPU seconds a second that statements took: the first factor of the cost.', 's', [
      { expr: q.rate('queryCpuSeconds', ['group']), legend: '{{group}}' },
    ]),
    lines('Bytes read', 'Bytes a second that statements read from tables: the second factor of the cost.', 'Bps', [
      { expr: q.rate('queryBytes', ['direction'], 'direction="input"'), legend: '{{direction}}' },
    ]),
    lines('Running at clusters', 'Delegated statements at each cluster: their hours are the third factor.', 'short', [
      { expr: q.sum('clusterRunning', ['cluster']), legend: '{{cluster}}' },
    ]),
    lines('Statements by user', 'Ended statements a second of the most active users.', 'reqps', [
      { expr: `topk(10, ${q.rate('userQueries', ['user'])})`, legend: '{{user}}' },
    ]),
    lines('Statements by client', 'Ended statements a second, by the name of the client program.', 'reqps', [
      { expr: `topk(10, ${q.rate('sourceQueries', ['source'])})`, legend: '{{source}}' },
    ]),
    costByUser,
    costByGroup,
    costByApp,
    costByTable,
    costByCluster,
    dearestQueries,
    dearestShapes,
  ],
}
