/**
 * File URL of the module that engines load: their functions, and the names that statements may call. Only engines
 * import it.
 */
export const ENGINE_MODULE = new URL('./engine-module.js', import.meta.url).href
