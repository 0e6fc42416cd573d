import type { TaskId } from '../../shared/ids.ts'
import type { ClosedPage } from '../api/task.ts'
import type { PageStore } from './page-store.ts'
import type { WorkerEvent } from './worker-events.ts'

export interface PageReading {
  readonly pages: PageStore
  onEvent(event: WorkerEvent): void
}

/** @throws EngineError PAGE_TRANSPORT_ERROR when the page was listed and is lost */
export async function readPage(
  { pages, onEvent }: PageReading,
  taskId: TaskId,
  page: ClosedPage | undefined,
): Promise<{ readonly page: ClosedPage; readonly bytes: Buffer } | undefined> {
  if (!page) return undefined
  try {
    const bytes = await pages.read(taskId, page)
    onEvent({ type: 'pageRead', taskId, bytes: bytes.length })
    return { page, bytes }
  } catch (error) {
    onEvent({ type: 'pageLost', taskId, token: page.token })
    throw error
  }
}
