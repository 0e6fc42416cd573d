import { z } from 'zod'
import { durationMillis, sizeBytes } from '../../../shared/quantities.ts'

/** Figures of a query at its cluster. A figure that the cluster does not give is absent. */
export interface RemoteFigures {
  /** The cluster's state of the query: `RUNNING`, `FINISHED`, … */
  readonly state: string
  readonly resourceGroup?: string
  readonly elapsedMillis?: number
  readonly queuedMillis?: number
  readonly cpuMillis?: number
  readonly scheduledMillis?: number
  readonly peakMemoryBytes?: number
  readonly spilledBytes?: number
  readonly inputRows?: number
  readonly inputBytes?: number
  readonly physicalInputBytes?: number
  readonly outputRows?: number
  readonly outputBytes?: number
  readonly writtenRows?: number
  readonly writtenBytes?: number
  readonly completedSplits?: number
  readonly totalSplits?: number
}

// A member of an unexpected form counts as absent: no decision depends on these figures.
const amount = (read: (text: string) => number | undefined) => z.string().transform(read).optional().catch(undefined)
const duration = amount(durationMillis)
const size = amount(sizeBytes)
const count = z.number().nonnegative().optional().catch(undefined)

const figuresSchema = z.object({
  state: z.string(),
  resourceGroupId: z.array(z.string()).optional().catch(undefined),
  queryStats: z.object({
    elapsedTime: duration,
    queuedTime: duration,
    totalCpuTime: duration,
    totalScheduledTime: duration,
    peakTotalMemoryReservation: size,
    spilledDataSize: size,
    processedInputPositions: count,
    processedInputDataSize: size,
    physicalInputDataSize: size,
    outputPositions: count,
    outputDataSize: size,
    writtenPositions: count,
    physicalWrittenDataSize: size,
    completedSplits: count,
    completedDrivers: count,
    totalSplits: count,
    totalDrivers: count,
  }),
})

/** Reads the body of Trino's `GET /v1/query/{id}`; undefined when it has another form. */
export function remoteFigures(parsed: unknown): RemoteFigures | undefined {
  const { success, data } = figuresSchema.safeParse(parsed)
  if (!success) return undefined
  const { state, resourceGroupId, queryStats: stats } = data
  const figures = {
    resourceGroup: resourceGroupId?.join('.'),
    elapsedMillis: stats.elapsedTime,
    queuedMillis: stats.queuedTime,
    cpuMillis: stats.totalCpuTime,
    scheduledMillis: stats.totalScheduledTime,
    peakMemoryBytes: stats.peakTotalMemoryReservation,
    spilledBytes: stats.spilledDataSize,
    inputRows: stats.processedInputPositions,
    inputBytes: stats.processedInputDataSize,
    physicalInputBytes: stats.physicalInputDataSize,
    outputRows: stats.outputPositions,
    outputBytes: stats.outputDataSize,
    writtenRows: stats.writtenPositions,
    writtenBytes: stats.physicalWrittenDataSize,
    // Trino counts the splits of a query as drivers.
    completedSplits: stats.completedSplits ?? stats.completedDrivers,
    totalSplits: stats.totalSplits ?? stats.totalDrivers,
  }
  return { state, ...Object.fromEntries(Object.entries(figures).filter(([, value]) => value !== undefined)) }
}
