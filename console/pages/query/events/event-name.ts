/** The short name of an event: `quipu.query.planned.v2` is `query planned`. */
export function eventName({ type }: { readonly type: string }): string {
  return type
    .replace(/^quipu\./, '')
    .replace(/\.v\d+$/, '')
    .replaceAll('.', ' ')
}

/** Whether an event has the plan of its query. */
export function isPlan(event: { readonly type: string }): boolean {
  return event.type.startsWith('quipu.query.planned.')
}

/** Whether an event is the last of its query. */
export function isEndOfQuery(event: { readonly type: string } | undefined): boolean {
  return event !== undefined && /^quipu\.query\.(finished|failed)\./.test(event.type)
}
