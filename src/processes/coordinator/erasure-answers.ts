import type { ErasureRoutesDeps } from '../../protocol/erasure/erasure-routes.ts'
import { HttpProblem } from '../../protocol/edge/problem.ts'
import type { ErasureInfo } from '../../protocol/info/schemas/server.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { ErasureBusy, type ErasureState, type Erasures, type PreviewState } from '../record/erasures.ts'

/** Erasures as the resource `/v1/erasure` answers about them. */
export function erasureAnswers(erasures: Erasures): Pick<ErasureRoutesDeps, 'preview' | 'begin' | 'find'> {
  return {
    preview: (order) => answered(() => erasures.preview(order)),
    begin: (order, administrator) => answered(() => erasures.begin(order, administrator)),
    async find(id) {
      const state = await erasures.find(id)
      return state && infoOf(state)
    },
  }
}

async function answered(work: () => PreviewState | ErasureState | Promise<ErasureState>): Promise<ErasureInfo> {
  try {
    return infoOf(await work())
  } catch (error) {
    if (error instanceof ErasureBusy) throw new HttpProblem(409, `${error.message}: wait until it has ended`)
    if (error instanceof EngineError) throw new HttpProblem(400, error.message)
    throw error
  }
}

function infoOf(state: PreviewState | ErasureState): ErasureInfo {
  if (state.kind === 'preview') {
    const { id, requestedAt, found, failure } = state
    return {
      erasureId: id,
      state: failure !== undefined ? 'FAILED' : found ? 'ENDED' : 'RUNNING',
      preview: true,
      requestedAt,
      ...(failure !== undefined && { failure }),
      ...(found && { found }),
    }
  }
  const { id, requestedAt, endedAt, request, result } = state.erasure
  return {
    erasureId: id,
    state: endedAt === undefined ? 'RUNNING' : 'ENDED',
    preview: false,
    requestedAt,
    ...(endedAt !== undefined && { endedAt }),
    ...(state.failure !== undefined && { failure: state.failure }),
    request,
    ...(result && { result }),
  }
}
