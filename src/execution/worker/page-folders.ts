import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isQueryId, splitTaskId, taskId as makeTaskId, type QueryId, type TaskId } from '../../shared/ids.ts'
import { parseIndex, type IndexLine } from './page-index.ts'

/** A task found on disk at the start of the process. */
export interface StoredTask {
  readonly taskId: TaskId
  readonly lines: readonly IndexLine[]
  /** Token of the first page that is still there: the pages before it were acknowledged. */
  readonly firstPresent: number | undefined
}

/** The folders of pages: `<root>/<queryId>/<stage>.<task>/<token>.json`, and `index.jsonl` beside them. */
export class PageFolders {
  readonly root: string

  /** @param root absolute */
  constructor(root: string) {
    this.root = root
  }

  ofTask(id: TaskId): string {
    const { queryId, stage, task } = splitTaskId(id)!
    return join(this.root, queryId, `${stage}.${task}`)
  }

  page(id: TaskId, token: number): string {
    return join(this.ofTask(id), `${token}.json`)
  }

  index(id: TaskId): string {
    return join(this.ofTask(id), INDEX)
  }

  /**
   * Finds the tasks that earlier processes left; removes files that no index names.
   * @param onPage called for each page that is there
   */
  restore(onPage: (page: { readonly path: string; readonly queryId: QueryId; readonly bytes: number }) => void) {
    const found: StoredTask[] = []
    for (const queryId of readdirSync(this.root)) {
      if (!isQueryId(queryId)) continue
      for (const name of readdirSync(join(this.root, queryId))) {
        const match = /^(\d+)\.(\d+)$/.exec(name)
        if (!match) continue
        const taskId = makeTaskId(queryId, Number(match[1]), Number(match[2]))
        const lines = readIndex(this.index(taskId))
        if (lines[0]?.type !== 'task') {
          rmSync(this.ofTask(taskId), { recursive: true, force: true })
          continue
        }
        const present = new Set(readdirSync(this.ofTask(taskId)))
        let firstPresent: number | undefined
        const listed = new Set<string>([INDEX])
        for (const line of lines) {
          if (line.type !== 'page' || !present.has(`${line.token}.json`)) continue
          firstPresent ??= line.token
          listed.add(`${line.token}.json`)
          onPage({ path: this.page(taskId, line.token), queryId, bytes: line.bytes })
        }
        for (const file of present) if (!listed.has(file)) rmSync(join(this.ofTask(taskId), file), { force: true })
        found.push({ taskId, lines, firstPresent })
      }
    }
    return found
  }
}

const INDEX = 'index.jsonl'

function readIndex(path: string): IndexLine[] {
  try {
    return parseIndex(readFileSync(path, 'utf8'))
  } catch {
    return []
  }
}
