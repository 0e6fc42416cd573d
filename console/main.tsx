import './kit-styles.ts'
import './console.css'
import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { createQueryClient } from './api/query-client.ts'
import { App } from './app.tsx'
import { TimeZoneProvider } from './shell/time-zone.tsx'

const root = document.getElementById('root')
if (!root) throw new Error('The page has no element with the id root')

createRoot(root).render(
  <StrictMode>
    {/* The content security policy refuses style elements: the style sheet has the variables and classes instead. */}
    <MantineProvider defaultColorScheme="auto" withCssVariables={false} withGlobalClasses={false}>
      <QueryClientProvider client={createQueryClient()}>
        <TimeZoneProvider>
          <App />
        </TimeZoneProvider>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
)
