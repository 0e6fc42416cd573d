import type { TaskId } from '../../shared/ids.ts'
import { MOST_INLINE_BYTES } from '../api/task.ts'
import type { IndexLine } from './page-index.ts'

/** A task without anything on the disk yet. */
export interface UnwrittenTask {
  readonly lines: IndexLine[]
  readonly pages: ReadonlyMap<number, Buffer>
}

interface Held extends UnwrittenTask {
  readonly pages: Map<number, Buffer>
  bytes: number
}

const ALL_BYTES = 8 * 1024 * 1024

/** Tasks with a small output that is only in memory, until it grows or the coordinator may come back for it. */
export class UnwrittenTasks {
  readonly #tasks = new Map<TaskId, Held>()
  #bytes = 0

  begin(taskId: TaskId, line: IndexLine): void {
    this.#tasks.set(taskId, { lines: [line], pages: new Map(), bytes: 0 })
  }

  has(taskId: TaskId): boolean {
    return this.#tasks.has(taskId)
  }

  /** @returns false when there is no room for the page here */
  add(taskId: TaskId, token: number, bytes: Buffer): boolean {
    const task = this.#tasks.get(taskId)
    if (!task || task.bytes + bytes.length > MOST_INLINE_BYTES || this.#bytes + bytes.length > ALL_BYTES) return false
    task.pages.set(token, bytes)
    task.bytes += bytes.length
    this.#bytes += bytes.length
    return true
  }

  /** @returns false when the task is on the disk, so that the line belongs in its file */
  note(taskId: TaskId, line: IndexLine): boolean {
    const task = this.#tasks.get(taskId)
    task?.lines.push(line)
    return task !== undefined
  }

  page(taskId: TaskId, token: number): Buffer | undefined {
    return this.#tasks.get(taskId)?.pages.get(token)
  }

  removePage(taskId: TaskId, token: number): void {
    const task = this.#tasks.get(taskId)
    const bytes = task?.pages.get(token)
    if (!task || !bytes) return
    task.pages.delete(token)
    task.bytes -= bytes.length
    this.#bytes -= bytes.length
  }

  /** Removes and returns a task: the caller writes or drops it. */
  take(taskId: TaskId): UnwrittenTask | undefined {
    const task = this.#tasks.get(taskId)
    if (!task) return undefined
    this.#tasks.delete(taskId)
    this.#bytes -= task.bytes
    return task
  }
}
