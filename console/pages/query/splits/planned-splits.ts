/** A part of a table that a stage reads, as the plan counts it. */
export interface PlannedSplit {
  /** Unique in the query. */
  readonly id: string
  readonly stage: string
  readonly scan: number
  readonly catalog: string
  readonly rows: number | undefined
  readonly bytes: number | undefined
}

/** Reads the splits from the data of the event QueryPlanned; none if the data has another shape. */
export function plannedSplits(data: unknown): readonly PlannedSplit[] {
  return listIn(data, 'stages').flatMap((stage) =>
    listIn(stage, 'splits').map((split, at) => ({
      id: `${text(stage, 'id')}/${at}`,
      stage: text(stage, 'id'),
      scan: number(split, 'scan') ?? 0,
      catalog: text(split, 'catalog'),
      rows: number(split, 'rows'),
      bytes: number(split, 'bytes'),
    })),
  )
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined
}

function listIn(value: unknown, name: string): readonly unknown[] {
  const list = field(value, name)
  return Array.isArray(list) ? list : []
}

function text(value: unknown, name: string): string {
  const found = field(value, name)
  return typeof found === 'string' || typeof found === 'number' ? String(found) : ''
}

function number(value: unknown, name: string): number | undefined {
  const found = field(value, name)
  return typeof found === 'number' ? found : undefined
}
