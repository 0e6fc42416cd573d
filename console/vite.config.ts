import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

const assets = join(import.meta.dirname, '../dist/console/assets')

/** Writes each asset once more, compressed: the coordinator does not spend CPU on it. */
const compressed: Plugin = {
  name: 'compressed assets',
  closeBundle() {
    for (const name of readdirSync(assets))
      writeFileSync(join(assets, `${name}.gz`), gzipSync(readFileSync(join(assets, name)), { level: 9 }))
  },
}

/** Builds the console into `dist/console`, which the coordinator serves under `/ui`. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/ui/',
  logLevel: 'warn',
  plugins: [compressed],
  esbuild: { jsx: 'automatic', jsxDev: false },
  // Tests run this build with NODE_ENV=test, for which React would have its larger development version.
  define: { 'process.env.NODE_ENV': JSON.stringify('production') },
  build: {
    outDir: '../dist/console',
    emptyOutDir: true,
    target: 'es2022',
    // The content security policy refuses scripts and styles inside the page.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The graphs and the editor are chunks of their own; the first chunk has the component kit.
    chunkSizeWarningLimit: 700,
    rollupOptions: {
      // Libraries mark modules for server rendering, which the console does not use.
      onwarn: (warning, warn) => (warning.code === 'MODULE_LEVEL_DIRECTIVE' ? undefined : warn(warning)),
    },
  },
})
