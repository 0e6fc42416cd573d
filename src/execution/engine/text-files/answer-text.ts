import { realpath } from 'node:fs/promises'
import type { FileQuestion, TextQuestion } from '../../../connectors/spi/table-source.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import { checkTimes } from '../parquet-times.ts'
import { checkCsv, csvShape } from './csv-shape.ts'
import { checkJson, jsonShape } from './json-shape.ts'

type Row = Readonly<Record<string, unknown>>

export function isTextQuestion(question: FileQuestion): question is TextQuestion {
  return 'path' in question
}

/**
 * Answers a connector's question about one file, without DuckDB.
 * @param allowed folders that files may be in, as DuckDB gets them: absolute, with a trailing slash
 * @throws TextFault for text that cannot be read; Error for a file outside of the folders
 */
export async function answerOfFile(question: TextQuestion, allowed: readonly string[]): Promise<readonly Row[]> {
  await checkInside(question.path, allowed)
  switch (question.kind) {
    case 'csvShape':
      return [{ ...(await csvShape(question.path, question.declared)) }]
    case 'jsonShape':
      return [{ ...(await jsonShape(question.path)) }]
    case 'csvCheck':
      await checkCsv(question.path, question.dialect, question.needs)
      return []
    case 'jsonCheck':
      await checkJson(question.path, question.layout, question.isRecord, question.needs)
      return []
    case 'timesCheck':
      await checkTimes(question.path, question.columns)
      return []
    default:
      return unreachable(question)
  }
}

/** Refuses a file outside of the folders. A missing file passes: opening it fails later. */
async function checkInside(path: string, allowed: readonly string[]): Promise<void> {
  const real = await realpath(path).catch(() => path)
  if (allowed.some((folder) => real.startsWith(folder)) && !real.split('/').includes('..')) return
  throw new Error(
    `Permission Error: Cannot access file "${path}" - file system operations are disabled by configuration`,
  )
}
