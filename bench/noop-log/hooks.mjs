const NOOP = new URL('./noop-event-log.mjs', import.meta.url).href

export async function resolve(specifier, context, next) {
  if (specifier.endsWith('/postgres/postgres-event-log.js')) return { url: NOOP, shortCircuit: true }
  return next(specifier, context)
}
