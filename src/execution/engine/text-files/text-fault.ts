import { Signal } from '../../../shared/quipu-error.ts'
/** The beginning of the text of a fault in a text file; no text of DuckDB begins so. */
const FAULT = 'Text Error in file '

/** A value or a line of a file that does not have the expected form. */
export class TextFault extends Signal {
  /**
   * @param path absolute
   * @param line counted from 1
   * @param what is wrong there, a sentence without its full stop
   */
  constructor(path: string, line: number, what: string) {
    super(`${FAULT}"${path}", line ${line}: ${what}`)
  }
}

/** Values of a column that cannot be represented. */
export class ColumnFault extends Signal {
  /**
   * @param path absolute
   * @param what is wrong there, the end of a sentence without its full stop
   */
  constructor(path: string, column: string, what: string) {
    super(`${FAULT}"${path}", column ${shown(column)} ${what}`)
  }
}

/** The description of a fault, if the text is a fault of this file. */
export function textFaultOf(text: string, path: string): string | undefined {
  const start = `${FAULT}"${path}", `
  if (!text.startsWith(start)) return undefined
  const what = text.slice(start.length)
  return what.charAt(0).toUpperCase() + what.slice(1)
}

/** A value as the text of a fault shows it. */
export function shown(value: string): string {
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
}
