import { lazy, Suspense } from 'react'
import { Route, Router, Switch, useLocation } from 'wouter'
import { Layout } from './shell/layout.tsx'
import { PageBoundary } from './shell/page-boundary.tsx'
import { QueriesPage } from './pages/queries/queries.tsx'

// The code of the other pages is loaded when they are first shown.
const QueryPage = lazy(async () => ({ default: (await import('./pages/query/query.tsx')).QueryPage }))
const ComparePage = lazy(async () => ({ default: (await import('./pages/compare/compare.tsx')).ComparePage }))
const SqlPage = lazy(async () => ({ default: (await import('./pages/sql/sql.tsx')).SqlPage }))
const RecordPage = lazy(async () => ({ default: (await import('./pages/record/record.tsx')).RecordPage }))
const GroupsPage = lazy(async () => ({ default: (await import('./pages/groups/groups.tsx')).GroupsPage }))
const ClusterPage = lazy(async () => ({ default: (await import('./pages/cluster/cluster.tsx')).ClusterPage }))

/** The console: one page per address below `/ui`. `PAGES` of the server lists the same addresses. */
export function App() {
  return (
    <Router base="/ui">
      <Layout>
        <Pages />
      </Layout>
    </Router>
  )
}

function Pages() {
  const [location] = useLocation()
  return (
    <PageBoundary key={location}>
      <Suspense fallback={<p>The page is being loaded.</p>}>
        <Switch>
          <Route path="/" component={QueriesPage} />
          <Route path="/query/:queryId">{({ queryId }) => <QueryPage key={queryId} queryId={queryId} />}</Route>
          <Route path="/compare" component={ComparePage} />
          <Route path="/sql" component={SqlPage} />
          <Route path="/record" component={RecordPage} />
          <Route path="/groups" component={GroupsPage} />
          <Route path="/cluster" component={ClusterPage} />
          <Route path="/nodes" component={ClusterPage} />
          <Route>
            <h1>There is no such page</h1>
          </Route>
        </Switch>
      </Suspense>
    </PageBoundary>
  )
}
