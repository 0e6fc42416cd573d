/** File URL of what engines load: their functions, and what statements may call. Not imported anywhere else than there. */
export const ENGINE_MODULE = new URL('./engine-module.js', import.meta.url).href
