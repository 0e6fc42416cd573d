-- schema: read models
-- breaking: no
-- after: rows
-- Statistics of the users who posted queries as other users. Without them the planner expects thousands of such queries for each
-- user, and reads all queries in the order of the list to find a few.

create statistics queries_posters on (left(details->'session'->>'originalUser', 200)), (details->'session'->>'originalUser')
  from queries;
