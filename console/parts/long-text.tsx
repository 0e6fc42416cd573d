import { shownCount } from './units.ts'

/** Longer texts are cut in cells; a download has them whole. */
const MOST_CHARACTERS = 1000

/** A text in a cell of a table: a long text is broken into lines, and cut after 1,000 characters. */
export function LongText({ text }: { readonly text: string }) {
  return text.length <= MOST_CHARACTERS ? (
    <span className="cell">{text}</span>
  ) : (
    <span className="cell" title={`The first ${shownCount(MOST_CHARACTERS)} of ${shownCount(text.length)} characters`}>
      {text.slice(0, MOST_CHARACTERS)}…
    </span>
  )
}
