"""Runs statements one after the other with the published Trino client and prints what became of each, a JSON line each."""
import hashlib
import json
import random
import sys
import time

import requests
import trino

host, port, seed, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
STATEMENTS = json.loads(sys.argv[5])
# The user, the pause after each statement, and for a server with HTTPS and passwords also the password and the file of the authority.
ACCESS = json.loads(sys.argv[6])
CONNECTION = {'host': host, 'port': port, 'user': ACCESS['user'], 'catalog': 'tpch', 'schema': 'tiny'}
if 'password' in ACCESS:
    CONNECTION.update(
        http_scheme='https',
        auth=trino.auth.BasicAuthentication(ACCESS['user'], ACCESS['password']),
        verify=ACCESS['ca'],
    )
rng = random.Random(seed)
end = time.time() + seconds


def digest(rows):
    """Order does not matter, every row does."""
    total = 0
    for row in rows:
        total += int.from_bytes(hashlib.md5(json.dumps(row, separators=(',', ':'), ensure_ascii=False).encode()).digest(), 'big')
    return f'{len(rows)}:{total % 2**128:032x}'


while time.time() < end:
    name = rng.choice(sorted(STATEMENTS))
    conn = trino.dbapi.connect(**CONNECTION)
    cur = conn.cursor()
    out = {'name': name, 'from': time.time()}
    try:
        cur.execute(STATEMENTS[name])
        out['rows'] = digest(cur.fetchall())
    except trino.exceptions.TrinoQueryError as error:
        out['error'] = error.error_name
    except (trino.exceptions.TrinoConnectionError, trino.exceptions.Http5xxException if hasattr(trino.exceptions, 'Http5xxException') else trino.exceptions.Http503Error, requests.exceptions.RequestException) as error:
        # An answer cut in flight ends the client with its own connection error.
        out['connection'] = type(error).__name__ + ': ' + str(error)[:120]
    except Exception as error:
        out['broken'] = type(error).__name__ + ': ' + str(error)[:300]
    out['to'] = time.time()
    out['id'] = cur.query_id if hasattr(cur, 'query_id') else None
    print(json.dumps(out), flush=True)
    time.sleep(ACCESS['pauseMs'] / 1000)
