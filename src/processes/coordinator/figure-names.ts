import type { FigureNames } from '../../coordinator/query/query-metrics.ts'
import type { CoordinatorBase } from './wire-base.ts'

/** What figures call catalogs and resource groups by. */
export function figureNames({ catalogs, access }: Pick<CoordinatorBase, 'catalogs' | 'access'>): FigureNames {
  return {
    connectorOf: (catalog) => catalogs.get(catalog)?.connectorName ?? 'none',
    groupLabel: (group) => access.groupLabel(group),
  }
}
