import {
  ref,
  arrayOf,
  json,
  nothing,
  problemOf,
  parameter,
  path,
  query,
  countSchema,
  header,
  internal,
  sequence,
  asOf,
} from './document-parts.ts'

const taskId = path('taskId', 'Query identifier, stage and task number, separated by dots')

const epoch = parameter(
  'header',
  'X-Engine-Epoch',
  'Epoch of the coordinator; if the worker has seen a higher one, it answers 409',
  countSchema,
)

const staleEpoch = problemOf('A coordinator with a higher epoch has taken over')

const unlikeTask = problemOf('A coordinator with a higher epoch has taken over, or the task is a part of its statement')

/** The operations on tasks of workers. */
export const taskOperations = {
  '/v1/task': {
    get: {
      summary: 'All tasks that the server knows',
      parameters: [query('since', 'Internal: wait for tasks that changed after this version')],
      responses: { 200: json('Tasks', arrayOf('TaskInfo')), 401: problemOf('The request has no cluster secret') },
    },
    delete: {
      summary: 'Internal, on a worker: delete tasks of ended queries; unknown tasks are ignored',
      security: internal,
      parameters: [epoch],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: { type: 'object', properties: { taskIds: { type: 'array', items: { type: 'string' } } } },
          },
        },
      },
      responses: {
        204: nothing('The tasks are deleted'),
        400: problemOf('The body is not a list of tasks'),
        401: problemOf('The request has no cluster secret'),
        405: problemOf('This server is a coordinator'),
        409: staleEpoch,
      },
    },
  },
  '/v1/task/{taskId}': {
    get: {
      summary: 'A task',
      parameters: [taskId, asOf],
      responses: {
        200: json('The task', ref('TaskInfo'), undefined, sequence),
        400: problemOf('asOf is neither a sequence nor a time, or this server is a worker'),
        404: problemOf('The task does not exist, or did not exist then'),
        503: problemOf('The history cannot be read now'),
      },
    },
    post: {
      summary: 'Create or update a task',
      security: internal,
      parameters: [taskId, epoch],
      requestBody: { required: true, content: { 'application/json': { schema: ref('TaskUpdate') } } },
      responses: {
        200: json('The task', ref('TaskInfo')),
        400: problemOf('The body is not a valid task update'),
        401: problemOf('The request has no cluster secret'),
        404: problemOf('This server is a coordinator'),
        409: staleEpoch,
      },
    },
    delete: {
      summary: 'Delete a task',
      security: internal,
      parameters: [taskId],
      responses: {
        200: json('The task after its end', ref('TaskInfo')),
        404: problemOf('The task does not exist'),
        409: staleEpoch,
      },
    },
  },
  '/v1/task/{taskId}/results/{outputId}/{token}': {
    get: {
      summary: 'A page of rows of a task',
      security: internal,
      parameters: [
        taskId,
        path('outputId', 'Output buffer'),
        path('token', 'Number of the page'),
        epoch,
        parameter('header', 'X-Engine-Max-Wait', 'How long the worker waits for the page, for example `500ms`'),
        parameter(
          'header',
          'X-Engine-Acknowledge',
          'The worker may delete pages before this one; fetching alone deletes none',
          countSchema,
        ),
      ],
      responses: {
        200: json('Rows', { type: 'array' }, undefined, {
          'X-Engine-Task-Instance-Id': header('Identifier of the process that holds the task'),
          'X-Engine-Page-Token': header('Number of this page', countSchema),
          'X-Engine-Page-Next-Token': header('Number of the next page', countSchema),
          'X-Engine-Buffer-Complete': header('`true`: no page follows'),
          'X-Engine-Page-Sha256': header("SHA-256 of the page's bytes"),
        }),
        204: nothing('The page is not ready yet, or no page follows'),
        404: problemOf('The task or the page does not exist'),
        409: unlikeTask,
        410: problemOf('The page was already acknowledged'),
      },
    },
  },
  '/v1/task/{taskId}/results/{outputId}': {
    delete: {
      summary: 'Delete the output of a task',
      security: internal,
      parameters: [
        taskId,
        path('outputId', 'Output buffer'),
        query('before', 'Only pages before this one', countSchema),
      ],
      responses: { 204: nothing('The output is deleted'), 404: problemOf('The task does not exist'), 409: unlikeTask },
    },
  },
} as const
