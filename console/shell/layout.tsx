import { ActionIcon, Button, Group, SegmentedControl, Text, useMantineColorScheme } from '@mantine/core'
import type { ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import { useViewer } from '../api/viewer.ts'
import { useTimeZone } from './time-zone.tsx'
import classes from './layout.module.css'

const PAGES = [
  { path: '/', name: 'Queries' },
  { path: '/sql', name: 'SQL' },
  { path: '/record', name: 'Record' },
  { path: '/groups', name: 'Groups' },
  { path: '/cluster', name: 'Cluster' },
] as const

/** The frame of all pages: navigation, viewer, zone of times, colors. */
export function Layout({ children }: { readonly children: ReactNode }) {
  return (
    <>
      <header className={classes.header}>
        <Group component="nav" aria-label="Pages" gap="xs">
          <Text component={Link} href="/" fw={700} size="lg" c="inherit" td="none">
            Quipu
          </Text>
          {PAGES.map((page) => (
            <PageLink key={page.path} {...page} />
          ))}
        </Group>
        <Group gap="xs">
          <ZoneSwitch />
          <ColorSwitch />
          <Viewer />
        </Group>
      </header>
      <main className={classes.main}>{children}</main>
    </>
  )
}

function PageLink({ path, name }: { readonly path: string; readonly name: string }) {
  const [location] = useLocation()
  const shown =
    path === '/' ? location === '/' || /^\/(?:query|compare)(?:\/|$)/.test(location) : location.startsWith(path)
  return (
    <Button
      component={Link}
      href={path}
      size="compact-sm"
      variant={shown ? 'light' : 'subtle'}
      {...(shown ? { 'aria-current': 'page' as const } : {})}
    >
      {name}
    </Button>
  )
}

function ZoneSwitch() {
  const { zone, setZone } = useTimeZone()
  return (
    <SegmentedControl
      size="xs"
      aria-label="Time zone of all times"
      title={`Times are in ${zone === 'UTC' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone}`}
      value={zone}
      onChange={(chosen) => setZone(chosen === 'UTC' ? 'UTC' : 'local')}
      data={[
        { value: 'local', label: 'Local' },
        { value: 'UTC', label: 'UTC' },
      ]}
    />
  )
}

function ColorSwitch() {
  const { toggleColorScheme } = useMantineColorScheme()
  return (
    <ActionIcon
      variant="default"
      title="Switch between light and dark"
      aria-label="Switch between light and dark"
      onClick={toggleColorScheme}
    >
      ◐
    </ActionIcon>
  )
}

/** The viewing user. Logging out changes something at the server: it is a form, not a link. */
function Viewer() {
  const { data } = useViewer()
  if (!data || data.user === null) return null
  return (
    <>
      <Text size="sm">{data.user}</Text>
      {data.mayLogOut ? (
        <form method="post" action="/ui/log-out">
          <Button type="submit" size="compact-xs" variant="default">
            Log out
          </Button>
        </form>
      ) : null}
    </>
  )
}
