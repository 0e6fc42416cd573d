import type { TaskId } from '../../shared/ids.ts'
import type { ClosedPage } from '../api/task.ts'
import { createOutputBuffer, type OutputBuffer } from './output-buffer.ts'
import type { PageStore } from './page-store.ts'
import { readPage, type PageReading } from './read-page.ts'

/** A task's pages for their reader: which are listed, their bytes, and how far they are acknowledged. */
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

  /** Notes that the reader needs no page below a token any more, and removes these pages. */
  async acknowledge(before: number): Promise<void> {
    const passed = this.buffer.acknowledge(before)
    await Promise.all(passed.map(({ token, bytes }) => this.#pages.remove(this.#taskId, token, bytes)))
  }

  /** Removes all bytes: the reader will ask for no page any more. */
  async drop(): Promise<void> {
    const bytes = this.buffer.bufferedBytes()
    this.buffer.acknowledge(this.buffer.listed())
    this.buffer.close('dropped')
    await this.#pages.removeTask(this.#taskId, bytes)
  }
}
