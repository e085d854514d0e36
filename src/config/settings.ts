import { OPERATOR_SETTINGS, TRACE_SETTINGS } from './operator-settings.ts'

/** A setting, or several settings that belong together. */
export interface Setting {
  /** Names of the environment variables. `<SLUG>` is the name of an API in capitals. */
  names: string[]
  /** The default in words, as Markdown. */
  byDefault: string
  /** What the setting does, as Markdown. */
  about: string
}

/** A part of the configuration page. */
export interface SettingGroup {
  title: string
  settings: Setting[]
}

/**
 * All settings, with the sentences that operators read. `npm run docs` makes
 * `src/docs/operators/configuration.md` from this list. A test checks that the list has exactly the
 * settings that the code reads.
 */
export const SETTING_GROUPS: SettingGroup[] = [
  {
    title: 'Addresses',
    settings: [
      { names: ['PORT', 'HOST'], byDefault: '3000, 127.0.0.1', about: 'Where an API node listens.' },
      {
        names: ['OPS_PORT', 'OPS_HOST'],
        byDefault: '`PORT` + 1, 127.0.0.1',
        about: 'Where the operator console listens. `HOST` has no effect on the console.',
      },
      {
        names: ['METRICS_PORT', 'METRICS_HOST'],
        byDefault: '0 = off, 127.0.0.1',
        about:
          'Where a process serves `/metrics`, `/healthz` and `/readyz`. `npm start` counts up from this port: API nodes, workers, `probe`, `ops`.',
      },
      {
        names: ['BASE_URL'],
        byDefault: '`http://localhost:PORT`',
        about:
          'The public address: scheme, host and port, without a path. If it begins with `https:`, requests over plain HTTP get a 308 redirect to it, except `/healthz` and `/readyz`. Whoever opens the pages under another name can neither sign up nor log in, except under localhost and IP addresses. `npm start` and the image `all` have a demo account only if the address is localhost: a start with another address disables the demo account.',
      },
      {
        names: ['TLS_CERT_FILE', 'TLS_KEY_FILE', 'HTTP_REDIRECT_PORT'],
        byDefault: 'unset',
        about:
          'Files of the certificate and the key with which API nodes serve HTTPS themselves. API nodes read the files again when the files change. The third setting is a port that only redirects plain HTTP to HTTPS. All three need an `https:` `BASE_URL`.',
      },
      {
        names: ['TRUST_PROXY'],
        byDefault: 'unset',
        about:
          'Addresses or CIDR ranges of your proxies, comma-separated. Only their `X-Forwarded-` headers count; see [Proxies](#proxies).',
      },
      {
        names: ['DNS_SERVERS'],
        byDefault: "the system's",
        about:
          'Name servers for every connection that the gateway opens, comma-separated: `10.0.0.2,10.0.0.3:5353`. Names come from the hosts file and from DNS, with the search list of `/etc/resolv.conf`. The gateway does not find multicast names (`.local`).',
      },
    ],
  },
  {
    title: 'Stores and processes',
    settings: [
      {
        names: ['DATA_DIR'],
        byDefault: '`.data`',
        about: 'Folder of the embedded stores and of the secrets that `npm start` generates.',
      },
      {
        names: ['DATABASE_URL'],
        byDefault: 'embedded with `npm start`, else required',
        about:
          'Address of Postgres. The gateway reads the address as libpq does: `sslmode` means what it means to `psql`, and `PGSSLMODE`, `PGSSLNEGOTIATION`, `PGSSLROOTCERT`, `PGSSLCERT`, `PGSSLKEY` and `PGOPTIONS` complete the address. The embedded Postgres ignores these variables. Without `sslmode` the gateway uses no TLS, except if a certificate is set (`sslrootcert`, `sslcert` or `sslkey`): then it uses `verify-full`. The gateway itself sets the session settings that it depends on (time zone, date style, time-outs).',
      },
      {
        names: ['REDIS_URL'],
        byDefault: 'embedded with `npm start`, else required',
        about:
          'Address of Redis, with `rediss:` for TLS, user and password. It may name a node of a Redis Cluster, or list several nodes, comma-separated; nodes that are found later get the user and password of the first address. `NODE_EXTRA_CA_CERTS` names a CA.',
      },
      {
        names: ['DATABASE_CONNECTIONS'],
        byDefault: '10',
        about:
          'Connections of the main pool to Postgres. A process may open up to five more, see [Sizing](sizing.md#connections-and-idle-load).',
      },
      {
        names: ['CACHE_REDIS_URL'],
        byDefault: '`REDIS_URL`',
        about: 'A separate Redis for stored answers.',
      },
      {
        names: ['INSTALL'],
        byDefault: 'ask',
        about:
          'What `npm start` may do if Redis is missing. `ask` shows the command and, at a terminal, waits ten seconds for a no. `no` never installs.',
      },
      {
        names: ['WORKERS', 'WEB_NODES'],
        byDefault: '1, 1',
        about: 'How many workers and API nodes `npm start` runs. API nodes listen on `PORT`, `PORT` + 10, and so on.',
      },
      {
        names: ['WORKER_UPSTREAMS'],
        byDefault: 'all',
        about:
          'The APIs that this worker serves: slugs, comma-separated. The calls of these APIs travel in a lane of their own, which other workers do not serve. Workers without the setting serve all other APIs. So set it only on a [second worker service](tasks.md#scale), never in `.env.settings` or in the `literals` of Kubernetes.',
      },
    ],
  },
  {
    title: 'Secrets',
    settings: [
      {
        names: ['JWT_SECRET', 'KEY_PEPPER', 'ENCRYPTION_KEY'],
        byDefault: 'generated by `npm start`',
        about:
          '32 random bytes or more each, as base64url. API nodes need all three, workers and `probe` need only `ENCRYPTION_KEY`, and `ops` needs `ENCRYPTION_KEY` and `OPERATOR_TOKEN`. `JWT_SECRET` and `ENCRYPTION_KEY` may list further values after a comma. The gateway signs and seals with the first value, and accepts what any of the values signed or sealed.',
      },
      {
        names: ['OPERATOR_TOKEN'],
        byDefault: 'generated by `npm start`',
        about: 'Opens the operator console and the operator API. 32 characters or more.',
      },
    ],
  },
  OPERATOR_SETTINGS,
  {
    title: 'APIs',
    settings: [
      {
        names: ['UPSTREAM_<SLUG>_URL'],
        byDefault: 'the real address',
        about:
          'Base URL of an upstream, which may have a path and may be a private address. The gateway appends the path of the endpoint. Under another address the health of the upstream begins anew.',
      },
      {
        names: ['UPSTREAM_<SLUG>_FALLBACK_URL', 'UPSTREAM_<SLUG>_FALLBACK_CAPS'],
        byDefault: 'its real address, the caps in its file',
        about:
          "Address and caps of the fallback source, which answers if an API's own source fails. Of the built-in APIs, only the dictionary has a fallback source. If you set only `UPSTREAM_<SLUG>_URL`, no call goes to the fallback source: set the address of the fallback source too.",
      },
      {
        names: ['UPSTREAM_<SLUG>_KEY'],
        byDefault: 'unset',
        about: "The operator's key for an upstream. `news` needs a key: this key, or a key of the caller.",
      },
      {
        names: ['UPSTREAM_<SLUG>_CAPS'],
        byDefault: 'from its file',
        about: 'Caps of an upstream: `concurrency=4,60/3600,10/60` (requests/seconds).',
      },
      {
        names: ['UPSTREAMS_DIR'],
        byDefault: 'unset',
        about:
          'Folder of OpenAPI 3 documents, `<slug>.yaml`, `.yml` or `.json`. Each document is an [API of your own](own-apis.md). Processes follow the folder while they run. A document with an error keeps processes from starting, and keeps processes that run from taking over a change.',
      },
      {
        names: ['BUILTIN_UPSTREAMS'],
        byDefault: 'all',
        about: 'The built-in APIs that the gateway serves: slugs, comma-separated, or `none`.',
      },
      {
        names: ['CONTACT'],
        byDefault: "the project's address",
        about:
          'A mail or web address of yours. The address goes into the `User-Agent` header, because upstreams ask for it, and the portal shows it to users who want a plan or an account. Without `CONTACT` the encyclopedia gets 10 requests a minute instead of 60, because Wikimedia allows no more to anonymous clients; `npm start` and the console warn about it.',
      },
      {
        names: ['SECURITY_CONTACT'],
        byDefault: 'unset',
        about:
          'A `mailto:`, `https:` or `tel:` address for `/.well-known/security.txt`. Without it there is no such file.',
      },
      {
        names: ['CALL_TIMEOUT_MS'],
        byDefault: '30000',
        about:
          'The longest time that a caller waits for a call, milliseconds. An asynchronous call always has ten minutes.',
      },
    ],
  },
  {
    title: 'Accounts and plans',
    settings: [
      {
        names: ['PLAN_LIMITS'],
        byDefault: 'the table of [Plans](#plans)',
        about:
          'Limits of plans, as JSON: `{"Free":{"perMinute":10,"perMonth":1000,"inFlight":5,"resultMegabytes":16}}`. A limit that the JSON does not name keeps its value.',
      },
      {
        names: ['SIGNUP'],
        byDefault: 'open',
        about:
          'Who may have an account. `open`: everybody. `verified`: live calls begin when the email address of the account is proven (needs `SMTP_URL`). `approval`: live calls begin when an operator has approved the account. `closed`: nobody signs up; accounts that exist keep working, and `OIDC_ACCOUNTS` still makes accounts. Test calls are always answered. See [Free accounts](#free-accounts).',
      },
      {
        names: ['SMTP_URL', 'SMTP_FROM'],
        byDefault: 'unset, `agent-api-gateway@` the public host',
        about:
          'Mail server for proofs of addresses, links to a new password and notices (80 or 100 % of the calls of a month are used, a key expires), and the sender of these mails. `smtp://user:password@mail.example.org:587?requireTLS=true` sends nothing without STARTTLS. Without `requireTLS`, mails and password go in clear to a server that does not offer STARTTLS. `smtps:` is TLS from the first byte. Write special characters of user and password as in addresses: `%40` for `@`. If `SMTP_URL` is set, only proven addresses can join teams.',
      },
      {
        names: ['OAUTH'],
        byDefault: 'on if `BASE_URL` is https or localhost',
        about: '`off` removes the sign-in by OAuth, which MCP clients and other applications use.',
      },
      {
        names: ['OAUTH_ACCESS_TOKEN_HOURS'],
        byDefault: '8',
        about:
          'Lifetime of the access token of an application, 1 to 24 hours. If the user ends the connection to the application, the gateway refuses the token at once.',
      },
    ],
  },
  {
    title: 'Browsers',
    settings: [
      {
        names: ['CORS_ORIGINS'],
        byDefault: 'unset',
        about:
          'Origins (`https://app.example.com`, comma-separated) whose pages may call `/v1/call`, `/v1/calls`, `/v1/batch` and `/mcp` with a key that they send themselves. Account routes and cookies are never allowed. Every visitor of a page can read the key that the page has, so give the page a key of its own.',
      },
    ],
  },
  {
    title: 'Throttles',
    settings: [
      {
        names: ['SIGNUP_PER_MINUTE', 'LOGIN_FAILURES_PER_MINUTE'],
        byDefault: '60, 30',
        about:
          'Sign-ups, and failed log-ins, of a client address in a minute. 0 = off. In the settings of this table, a client address is an IPv4 address or an IPv6 /64. All client addresses of a public IPv6 /48 together may have four times as many.',
      },
      {
        names: ['SIGNUP_PER_HOUR', 'SIGNUP_PER_DAY'],
        byDefault: '5, 20',
        about:
          'Sign-ups in an hour, and in a day, from each public IPv4 address, IPv6 /64 and IPv6 /56. An IPv6 /48 may have four times as many, an IPv4 /24 eight times, an IPv6 /32 twenty times. Loopback and private addresses do not count. 0 = off.',
      },
      {
        names: ['CLIENT_CONNECTIONS_MAX', 'CLIENT_ANONYMOUS_PER_SECOND'],
        byDefault: '500, 200',
        about:
          'Open connections of a client address, and its requests without an account in a second, for each node. 0 = off. Behind a proxy, set `TRUST_PROXY`: without it all clients have the same address. See [How requests are counted](#how-requests-are-counted).',
      },
      {
        names: ['UNKNOWN_KEYS_PER_MINUTE'],
        byDefault: '120',
        about:
          'Unknown API keys, and sessions that have ended, that a node looks up for a client address in a minute. The node refuses further look-ups with 429. 0 = off.',
      },
      {
        names: ['ACCOUNT_REQUESTS_PER_SECOND'],
        byDefault: '100',
        about:
          'Requests of an account outside `/v1/call` in a second, for each node. 0 = off. See [How requests are counted](#how-requests-are-counted).',
      },
    ],
  },
  {
    title: 'Logs',
    settings: [
      {
        names: ['CALL_LOG_DAYS'],
        byDefault: '7',
        about:
          'How many days the log of calls covers, 0 to 90. Each ended call is a row in Postgres with ids, API, status, code and times, never with parameters, bodies or addresses. 0 = no rows, and existing rows are dropped.',
      },
      {
        names: ['CALL_LOG_MEGABYTES'],
        byDefault: '2048',
        about:
          'Room for the log of calls in Postgres, with its indexes. The quota of a day is 1 / (`CALL_LOG_DAYS` + 1) of this size; see [Sizing](sizing.md#postgres). When half of the quota is used, refused calls and test calls get no row. When the whole quota is used, only failures of admitted calls get a row, until the rows of these failures take a further fifth of the quota. `agw_call_log_dropped_total` counts calls without a row.',
      },
      {
        names: ['AUDIT_DAYS'],
        byDefault: '400',
        about: 'How many days the audit log covers: what operators changed.',
      },
      {
        names: ['LOG_LEVEL'],
        byDefault: 'info',
        about:
          '`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`. Log lines are JSON, or plain text at a terminal.',
      },
    ],
  },
  TRACE_SETTINGS,
]
