import type { TaskId } from '../../shared/ids.ts'
import type { ClosedPage } from '../api/task.ts'
import { createOutputBuffer, type OutputBuffer } from './output-buffer.ts'
import type { PageStore } from './page-store.ts'
import { readPage, type PageReading } from './read-page.ts'

/** A task's pages as their reader has them: which are listed, where they lie, and how far they are acknowledged. */
export class TaskOutput {
  readonly buffer: OutputBuffer = createOutputBuffer()
  readonly #reading: PageReading
  readonly #taskId: TaskId

  constructor(reading: PageReading, taskId: TaskId) {
    this.#reading = reading
    this.#taskId = taskId
  }

  get #pages(): PageStore {
    return this.#reading.pages
  }

  /** @throws EngineError PAGE_TRANSPORT_ERROR when the page was listed and is lost */
  page(token: number): Promise<{ readonly page: ClosedPage; readonly bytes: Buffer } | undefined> {
    return readPage(this.#reading, this.#taskId, this.buffer.page(token))
  }

  isAcknowledged(token: number): boolean {
    return token < this.buffer.acknowledged()
  }

  /** Pages below a token are passed for good. */
  async acknowledge(before: number): Promise<void> {
    const passed = this.buffer.acknowledge(before)
    await Promise.all(passed.map(({ token, bytes }) => this.#pages.remove(this.#taskId, token, bytes)))
  }

  /** Nobody will ask any more: all bytes go. */
  async drop(): Promise<void> {
    const bytes = this.buffer.bufferedBytes()
    this.buffer.acknowledge(this.buffer.listed())
    this.buffer.close('dropped')
    await this.#pages.removeTask(this.#taskId, bytes)
  }
}
