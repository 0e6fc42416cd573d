import { parseArgs } from 'node:util'
import { wrongFlags } from './command-flags.ts'
import { callServer, SERVER_USAGE, serverFlags } from './called-server.ts'
import { runStatement, type ReadAnswer } from './statement-client.ts'
import { ROWS_MEASURED, tableFormat, valueText, type TableFormat } from './table-text.ts'

const USAGE = `usage: quipu query [options] "SQL"

${SERVER_USAGE}
  --catalog <name>    catalog for table names without a catalog
  --schema <name>     schema for table names without a schema
  --source <name>     name of the client program, shown in the history (default: quipu query)

The SQL can also come from standard input. Exit code 1: the statement failed.
`

const EXIT_STATEMENT_FAILED = 1
const EXIT_INTERRUPTED = 130

/**
 * `quipu query`: runs one statement and prints its rows as an aligned table on standard output. If standard error is a
 * terminal, it shows the progress.
 * @returns the exit code
 */
export async function queryCommand(argv: readonly string[]): Promise<number> {
  const { values, sql } = await parse(argv)
  if (values.help) {
    process.stdout.write(USAGE)
    return 0
  }
  const cancel = new AbortController()
  process.once('SIGINT', () => cancel.abort())
  const printer = createPrinter()
  try {
    const server = callServer(values)
    const headers: Record<string, string> = { User: server.user, Source: values.source ?? 'quipu query' }
    if (values.catalog !== undefined) headers['Catalog'] = values.catalog
    if (values.schema !== undefined) headers['Schema'] = values.schema
    for await (const answer of runStatement({ server, sql, headers, signal: cancel.signal })) {
      if (answer.error) {
        printer.clearProgress()
        process.stderr.write(`Query ${answer.id} failed: ${answer.error.errorName}: ${answer.error.message}\n`)
        process.stderr.write(errorLine(sql, answer.error.errorLocation))
        return EXIT_STATEMENT_FAILED
      }
      await printer.take(answer)
    }
    await printer.end()
    return 0
  } catch (error) {
    printer.clearProgress()
    if (cancel.signal.aborted) return EXIT_INTERRUPTED
    process.stderr.write(`quipu: ${(error as Error).message}\n`)
    return EXIT_STATEMENT_FAILED
  }
}

async function parse(argv: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      options: {
        ...serverFlags,
        catalog: { type: 'string' },
        schema: { type: 'string' },
        source: { type: 'string' },
        help: { type: 'boolean' },
      },
      allowPositionals: true,
    })
    if (positionals.length > 1) throw new Error('Give exactly one statement, in quotes: quipu query "SELECT 1"')
    const given = positionals[0] ?? (values.help || process.stdin.isTTY ? undefined : await readStandardInput())
    const sql = (given ?? '').trim().replace(/;$/, '')
    if (sql === '' && !values.help) throw new Error('No statement: quipu query "SELECT 1"')
    return { values, sql }
  } catch (error) {
    throw wrongFlags(error, 'quipu query')
  }
}

/** The line of an error with a caret under its position, as in the Trino CLI; '' if the position is not known. */
function errorLine(sql: string, location: { lineNumber: number; columnNumber: number } | undefined): string {
  const line = location && sql.split('\n')[location.lineNumber - 1]
  if (line === undefined) return ''
  const head = `LINE ${location!.lineNumber}: `
  return `${head}${line}\n${' '.repeat(head.length + location!.columnNumber - 1)}^\n`
}

async function readStandardInput(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function createPrinter() {
  const startedAt = performance.now()
  const live = process.stderr.isTTY === true
  let format: TableFormat | undefined
  let columns: ReadAnswer['columns']
  let last: ReadAnswer | undefined
  let held: (readonly unknown[])[] = []
  let rows = 0
  let shown = false

  const clearProgress = () => {
    if (shown) process.stderr.write('\r\u001b[K')
    shown = false
  }
  const write = async (text: string) => {
    clearProgress()
    // If the reader is slower than the server, this process's memory must not fill up.
    if (!process.stdout.write(text)) await new Promise((resolve) => process.stdout.once('drain', resolve))
  }
  const printHeld = async () => {
    if (columns === undefined) return
    const document = format === undefined && columns.length === 1 && held.length === 1 ? held[0]?.[0] : undefined
    if (typeof document === 'string' && document.includes('\n')) {
      // A plan or the text of a view: print its lines, not a table cell.
      held = []
      return write(`${document.trimEnd().split('\n').map(valueText).join('\n')}\n`)
    }
    const first = format === undefined
    const chosen = (format ??= tableFormat(columns, held))
    const lines = [...(first ? [chosen.header()] : []), ...held.map((row) => chosen.row(row))]
    held = []
    if (lines.length > 0) await write(`${lines.join('\n')}\n`)
  }
  return {
    clearProgress,
    take: async (answer: ReadAnswer) => {
      last = answer
      columns ??= answer.columns
      for (const row of answer.data ?? []) held.push(row)
      rows += answer.data?.length ?? 0
      if (format !== undefined || held.length >= ROWS_MEASURED) await printHeld()
      if (live && answer.nextUri !== undefined) {
        clearProgress()
        process.stderr.write(progress(answer, performance.now() - startedAt))
        shown = true
      }
    },
    end: async () => {
      // If the statement changes something, its only row is its count, which is printed below.
      if (last?.updateType === undefined) await printHeld()
      clearProgress()
      if (last?.updateType !== undefined) {
        const count = last.updateCount === undefined ? '' : `: ${last.updateCount} rows`
        await write(`${last.updateType}${count}\n`)
      } else if (live) {
        const seconds = ((performance.now() - startedAt) / 1000).toFixed(2)
        process.stderr.write(`(${rows} ${rows === 1 ? 'row' : 'rows'} in ${seconds} s, query ${last?.id})\n`)
      }
    },
  }
}

function progress({ id, stats }: ReadAnswer, elapsedMs: number): string {
  const splits = stats.totalSplits ? `, ${stats.completedSplits ?? 0}/${stats.totalSplits} splits` : ''
  const rows = stats.processedRows ? `, ${stats.processedRows} rows read` : ''
  return `${id} ${stats.state}${splits}${rows}, ${(elapsedMs / 1000).toFixed(1)} s`
}
