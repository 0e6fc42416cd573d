import type { FileQuestion, TextQuestion } from '../../connectors/spi/table-source.ts'
import { readParquetFooter } from './parquet-footer.ts'
import { footersText, openedText, questionText } from './scan-text.ts'

/** Runs a text of this program in DuckDB and gives its rows as JSON values. */
type Ask = (sql: string) => Promise<readonly unknown[]>

/**
 * The rows that answer a question about files. Files that DuckDB may not open are not opened here either. Errors in a
 * footer are reported in DuckDB's words.
 * @throws Error
 */
export async function answerToFiles(
  question: Exclude<FileQuestion, TextQuestion>,
  ask: Ask,
): Promise<readonly unknown[]> {
  if (question.kind !== 'footers') return ask(questionText(question))
  const { paths } = question
  if (paths.length === 0) return []
  await ask(openedText(paths))
  const footers: unknown[] = []
  for (const path of paths) {
    footers.push(
      await readParquetFooter(path).catch(async () => {
        await ask(footersText([path]))
        throw new Error(`Invalid Input Error: Footer of file '${path}' cannot be read`)
      }),
    )
  }
  return footers
}
