import type { DriverStats, PipelineStats } from '../api/task.ts'
import type { DuckDbOperator, DuckDbProfile } from '../engine/engine.ts'
import type { BatchFigures } from './batch-figures.ts'
import type { ScanInput } from './scan-input.ts'
import { pipelinesOf } from './pipelines.ts'

/**
 * A batch's pipelines, completed with figures that the profile does not have: input from the splits' metadata, the
 * process's CPU divided by the operators' times, output from the pages, and one driver each.
 */
export function batchPipelines(
  profile: DuckDbProfile,
  figures: Omit<BatchFigures, 'pipelines'>,
  inputs: readonly ScanInput[],
): PipelineStats[] {
  const pipelines = pipelinesOf(profile)
  const scheduled = pipelines.reduce((total, { scheduledNanos }) => total + scheduledNanos, 0)
  const raw = rawInputs(pipelines, profile, inputs)
  return pipelines.map((pipeline, index) => {
    const part = scheduled > 0 ? pipeline.scheduledNanos / scheduled : 1 / pipelines.length
    const { positions, bytes } = raw.get(index) ?? { positions: 0, bytes: 0 }
    const cpuNanos = Math.round(figures.cpuNanos * part)
    const blockedNanos = pipeline.outputPipeline ? figures.blockedNanos : 0
    const driver: DriverStats = {
      batch: figures.batch,
      startTime: new Date(figures.startedAt).toISOString(),
      endTime: new Date(figures.endedAt).toISOString(),
      queuedNanos: figures.queuedNanos,
      elapsedNanos: figures.wallNanos,
      scheduledNanos: pipeline.scheduledNanos,
      cpuNanos,
      blockedNanos,
    }
    const last = pipeline.operators.length - 1
    return {
      ...pipeline,
      rawInputPositions: positions,
      rawInputBytes: bytes,
      processedInputBytes: bytes,
      outputBytes: pipeline.outputPipeline ? figures.outputBytes : 0,
      totalDrivers: 1,
      completedDrivers: 1,
      cpuNanos,
      blockedNanos,
      operators: pipeline.operators.map((operator, position) => ({
        ...operator,
        // The input of a scan is the splits' rows, before the filters that are pushed into it.
        ...(position === 0 && raw.has(index) && { inputPositions: positions, inputBytes: bytes }),
        ...(position === last && pipeline.outputPipeline && { outputBytes: figures.outputBytes, blockedNanos }),
      })),
      drivers: [driver],
    }
  })
}

/**
 * The input of each pipeline that begins with a scan of the fragment. DuckDB names a scan's first files, which identify
 * the scan of the fragment. Scans of the same files (a self join) share their inputs evenly, and so do scans that name
 * no file.
 */
function rawInputs(
  pipelines: readonly PipelineStats[],
  profile: DuckDbProfile,
  inputs: readonly ScanInput[],
): ReadonlyMap<number, Pick<ScanInput, 'positions' | 'bytes'>> {
  const leaves = profile.children.flatMap(leavesOf)
  const readers: { readonly index: number; readonly scans: readonly number[] }[] = []
  for (const [index, { inputPipeline, operators }] of pipelines.entries()) {
    const source = operators[0]
    if (!inputPipeline || !source) continue
    const leaf = leaves.find(
      ({ type, rowsOut, timingSeconds }) =>
        type === source.engineOperator &&
        rowsOut === source.outputPositions &&
        Math.round(timingSeconds * 1e9) === source.timeNanos,
    )
    const named = filesOf(leaf)
    const scans = [...inputs.keys()].filter((scan) =>
      [...inputs[scan]!.files].some((file) => named.includes(`/${file}`)),
    )
    readers.push({ index, scans })
  }
  const found = new Map<number, { positions: number; bytes: number }>()
  for (const [scan, { positions, bytes }] of inputs.entries()) {
    let sharers = readers.filter(({ scans }) => scans.includes(scan))
    if (sharers.length === 0) sharers = readers.filter(({ scans }) => scans.length === 0)
    for (const { index } of sharers) {
      const sum = found.get(index) ?? { positions: 0, bytes: 0 }
      sum.positions += Math.round(positions / sharers.length)
      sum.bytes += Math.round(bytes / sharers.length)
      found.set(index, sum)
    }
  }
  return found
}

function leavesOf(operator: DuckDbOperator): DuckDbOperator[] {
  return operator.children.length === 0 ? [operator] : operator.children.flatMap(leavesOf)
}

function filesOf(leaf: DuckDbOperator | undefined): string {
  const names = leaf?.extraInfo['Filename(s)'] ?? ''
  return typeof names === 'string' ? names : names.join(', ')
}
