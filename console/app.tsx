import { Route, Router, Switch } from 'wouter'
import { Layout } from './shell/layout.tsx'
import { ClusterPage } from './pages/cluster/cluster.tsx'
import { GroupsPage } from './pages/groups/groups.tsx'
import { QueriesPage } from './pages/queries/queries.tsx'
import { QueryPage } from './pages/query/query.tsx'
import { ComparePage } from './pages/compare/compare.tsx'
import { RecordPage } from './pages/record/record.tsx'
import { SqlPage } from './pages/sql/sql.tsx'

/** The console: one page per address below `/ui`. `PAGES` of the server lists the same addresses. */
export function App() {
  return (
    <Router base="/ui">
      <Layout>
        <Switch>
          <Route path="/" component={QueriesPage} />
          <Route path="/query/:queryId">{({ queryId }) => <QueryPage key={queryId} queryId={queryId} />}</Route>
          <Route path="/compare" component={ComparePage} />
          <Route path="/sql" component={SqlPage} />
          <Route path="/record" component={RecordPage} />
          <Route path="/groups" component={GroupsPage} />
          <Route path="/cluster" component={ClusterPage} />
          <Route path="/nodes" component={ClusterPage} />
          <Route>There is no such page.</Route>
        </Switch>
      </Layout>
    </Router>
  )
}
