import { clusterStates } from '../../../coordinator/clusters/state.ts'
import { ref, arrayOf, json, nothing, problemOf, path, internal, eventPage, cloudEvents } from './document-parts.ts'

const clusterName = path('name', 'Name of its file, without `.json`')

/** The operations on nodes and clusters. */
export const nodeOperations = {
  '/v1/cluster': {
    get: {
      summary: 'The clusters that delegated statements may run at',
      responses: { 200: json('Clusters', arrayOf('ClusterInfo')) },
    },
  },
  '/v1/cluster/{name}': {
    get: {
      summary: 'A cluster',
      parameters: [clusterName],
      responses: { 200: json('The cluster', ref('ClusterInfo')), 404: problemOf('There is no such cluster') },
    },
  },
  '/v1/cluster/{name}/state': {
    put: {
      summary: 'Put a cluster into a state: only an ACTIVE one gets new statements, and running ones go on in each',
      description:
        'For the cluster secret, with `by`; and for users to whom the rules let write system information. An event records who asked, and why.',
      parameters: [clusterName],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              type: 'object',
              required: ['state'],
              properties: {
                state: { enum: clusterStates },
                reason: { type: 'string' },
                by: { type: 'string' },
              },
            },
          },
        },
      },
      responses: {
        200: json('It is in that state', ref('ClusterInfo')),
        400: problemOf('No such state'),
        401: problemOf('Neither a user nor the cluster secret'),
        403: problemOf('A user who may not'),
        404: problemOf('There is no such cluster'),
        503: problemOf('The event log does not answer'),
      },
    },
  },
  '/v1/cluster/{name}/events': {
    get: {
      summary: 'The events of a cluster as CloudEvents',
      parameters: [clusterName, ...eventPage],
      responses: {
        200: cloudEvents,
        404: problemOf('There is no such cluster'),
        503: problemOf('The read models do not answer'),
      },
    },
  },
  '/v1/node': {
    get: {
      summary: 'The known workers, with decaying counters',
      responses: { 200: json('Nodes', arrayOf('NodeInfo'), 'application/javascript') },
    },
  },
  '/v1/node/failed': {
    get: {
      summary: 'Workers that failed the last heartbeat check',
      responses: { 200: json('Nodes', arrayOf('NodeInfo'), 'application/javascript') },
    },
  },
  '/v1/node/{nodeId}/state': {
    put: {
      summary: 'Drain a worker: it takes no new tasks, and ends when its tasks are no longer needed',
      description:
        'Only the writer answers. Allowed with the cluster secret (then `by` names the user), and for users who may write system information by the access rules',
      parameters: [path('nodeId', 'Identifier of the worker')],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              oneOf: [
                { const: 'SHUTTING_DOWN' },
                { type: 'object', properties: { state: { const: 'SHUTTING_DOWN' }, by: { type: 'string' } } },
              ],
            },
          },
        },
      },
      responses: {
        200: json('The worker takes no new tasks', {
          type: 'object',
          properties: { nodeId: { type: 'string' }, uri: { type: 'string' }, state: { type: 'string' } },
        }),
        400: problemOf('The state is not SHUTTING_DOWN'),
        401: problemOf('The request has neither a user nor the cluster secret'),
        403: problemOf('The user may not do this'),
        404: problemOf('The worker does not exist'),
        503: problemOf('The worker or the event log does not answer'),
      },
    },
  },
  '/v1/announcement': {
    put: {
      summary: 'A worker announces itself, each second',
      security: internal,
      requestBody: { required: true, content: { 'application/json': { schema: ref('Announcement') } } },
      responses: {
        204: nothing('The announcement was received'),
        400: problemOf('The body is not a valid announcement'),
        401: problemOf('The request has no cluster secret'),
      },
    },
  },
  '/v1/announcement/{nodeId}': {
    delete: {
      summary: 'A worker leaves',
      security: internal,
      parameters: [path('nodeId', 'Identifier of the worker')],
      responses: { 204: nothing('The worker is removed'), 401: problemOf('The request has no cluster secret') },
    },
  },
} as const
