import type { FigureNames } from '../../coordinator/query/telemetry/query-metrics.ts'
import type { Catalogs } from '../../connectors/spi/catalogs.ts'

export interface NamedFigures {
  readonly catalogs: Catalogs
  readonly access: { groupLabel(group: string): string }
}

/** The labels of catalogs and resource groups in metrics. */
export function figureNames({ catalogs, access }: NamedFigures): FigureNames {
  return {
    connectorOf: (catalog) => catalogs.get(catalog)?.connectorName ?? 'none',
    groupLabel: (group) => access.groupLabel(group),
  }
}
