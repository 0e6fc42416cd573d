import type { FigureNames } from '../../coordinator/query/telemetry/query-metrics.ts'
import type { CoordinatorBase } from '../coordinator/wire-base.ts'

/** The labels of catalogs and resource groups in metrics. */
export function figureNames({ catalogs, access }: Pick<CoordinatorBase, 'catalogs' | 'access'>): FigureNames {
  return {
    connectorOf: (catalog) => catalogs.get(catalog)?.connectorName ?? 'none',
    groupLabel: (group) => access.groupLabel(group),
  }
}
