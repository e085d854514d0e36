import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import {
  ConfigError,
  childEnvironment,
  isLocalAddress,
  loadConfig,
  loadProcessConfig,
  loadStartConfig,
} from '../../src/config.ts'

const secret = (bytes = 32): string => randomBytes(bytes).toString('base64url')

const REQUIRED: Record<string, string> = {
  DATABASE_URL: 'postgres://user:password@host/database',
  REDIS_URL: 'redis://127.0.0.1:6379',
  JWT_SECRET: secret(),
  KEY_PEPPER: secret(),
  ENCRYPTION_KEY: secret(),
  OPERATOR_TOKEN: secret(),
}

const load = (environment: Record<string, string> = {}) => loadConfig({ ...REQUIRED, ...environment })

describe('the settings of a process', () => {
  it('the settings of a process have the documented defaults', () => {
    const config = load()
    assert.deepEqual(config.http, {
      host: '127.0.0.1',
      port: 3000,
      opsHost: '127.0.0.1',
      opsPort: 3001,
      metricsHost: '127.0.0.1',
      metricsPort: 0,
      baseUrl: 'http://localhost:3000',
      trustProxy: [],
      corsOrigins: [],
      tls: undefined,
      redirectPort: undefined,
      clients: { connectionsMax: 500, anonymousPerSecond: 200 },
      securityContact: undefined,
    })
    assert.equal(config.dataDir, resolve('.data'))
    assert.deepEqual(config.cacheRedisUrls, config.redisUrls)
    assert.deepEqual(config.processes, { workers: 1, webNodes: 1 })
    assert.equal(config.callTimeoutMs, 30_000)
    assert.deepEqual(config.throttles, {
      signupPerMinute: 60,
      signupPerHour: 5,
      signupPerDay: 20,
      loginFailuresPerMinute: 30,
      unknownKeysPerMinute: 120,
      accountRequestsPerSecond: 100,
    })
    assert.equal(config.log.level, 'info')
    assert.deepEqual(config.plans, {
      Free: { perMinute: 10, perMonth: 1_000, inFlight: 5, resultMegabytes: 16 },
      Pro: { perMinute: 100, perMonth: 100_000, inFlight: 25, resultMegabytes: 64 },
      Elite: { perMinute: 500, perMonth: 1_000_000, inFlight: 100, resultMegabytes: 256 },
      'Elite (contract)': { perMinute: 500, perMonth: 10_000_000, inFlight: 100, resultMegabytes: 256 },
    })
  })

  it('the last port is for a node if the console has a port of its own, and the refusal names the port that was set', () => {
    assert.equal(load({ PORT: '65535', OPS_PORT: '9000' }).http.port, 65_535)
    assert.throws(() => load({ PORT: '65535' }), /^Error: PORT must be at most 65534 unless OPS_PORT is set/)
  })

  it('the settings of a process are read from their variables', () => {
    const config = load({
      PORT: '8080',
      HOST: '0.0.0.0',
      OPS_HOST: '::1',
      OPS_PORT: '9000',
      METRICS_HOST: '10.0.0.7',
      METRICS_PORT: '9100',
      BASE_URL: 'https://api.example.org/',
      TLS_CERT_FILE: '/c.pem',
      TLS_KEY_FILE: '/k.pem',
      HTTP_REDIRECT_PORT: '80',
      TRUST_PROXY: '10.0.0.0/8, ::1 ,192.0.2.7,loopback',
      CORS_ORIGINS: 'https://app.example.com, http://localhost:5173',
      DATA_DIR: '/data',
      REDIS_URL: 'redis://a:1,rediss://b:2',
      CACHE_REDIS_URL: 'redis://cache:3',
      WORKERS: '4',
      WEB_NODES: '3',
      CONTACT: 'ops@example.org',
      CALL_TIMEOUT_MS: '5000',
      PLAN_LIMITS: '{"Free":{"perMinute":20},"Pro":{"inFlight":30}}',
      SIGNUP_PER_MINUTE: '0',
      LOGIN_FAILURES_PER_MINUTE: '7',
      LOG_LEVEL: 'debug',
    })
    assert.deepEqual(config.http, {
      host: '0.0.0.0',
      port: 8080,
      opsHost: '::1',
      opsPort: 9000,
      metricsHost: '10.0.0.7',
      metricsPort: 9100,
      baseUrl: 'https://api.example.org',
      trustProxy: ['10.0.0.0/8', '::1', '192.0.2.7', 'loopback'],
      corsOrigins: ['https://app.example.com', 'http://localhost:5173'],
      tls: { certFile: '/c.pem', keyFile: '/k.pem' },
      redirectPort: 80,
      clients: { connectionsMax: 500, anonymousPerSecond: 200 },
      securityContact: undefined,
    })
    assert.equal(config.dataDir, '/data')
    assert.deepEqual(config.redisUrls, ['redis://a:1', 'rediss://b:2'])
    assert.deepEqual(config.cacheRedisUrls, ['redis://cache:3'])
    assert.deepEqual(config.processes, { workers: 4, webNodes: 3 })
    assert.equal(config.upstreams.contact, 'ops@example.org')
    assert.equal(config.upstreams.isOperatorNamed, true)
    assert.equal(config.callTimeoutMs, 5_000)
    assert.deepEqual(config.plans.Free, { perMinute: 20, perMonth: 1_000, inFlight: 5, resultMegabytes: 16 })
    assert.equal(config.plans.Pro.inFlight, 30)
    assert.deepEqual(config.throttles, {
      signupPerMinute: 0,
      signupPerHour: 5,
      signupPerDay: 20,
      loginFailuresPerMinute: 7,
      unknownKeysPerMinute: 120,
      accountRequestsPerSecond: 100,
    })
    assert.equal(config.log.level, 'debug')
  })

  it('the settings of a process of an upstream are found by pattern, without a line for its slug', () => {
    const { bySlug } = load({
      UPSTREAM_CODE_HOST_USER_URL: 'http://127.0.0.1:9/prefix/',
      UPSTREAM_CODE_HOST_USER_CAPS: 'concurrency=4,60/3600, 10/0.5',
      UPSTREAM_NEWS_KEY: 'k',
      UPSTREAM_BRAND_NEW_URL: 'https://brand.new',
    }).upstreams
    assert.deepEqual(bySlug.get('code-host-user'), {
      url: 'http://127.0.0.1:9/prefix',
      caps: {
        concurrency: 4,
        rates: [
          { max: 60, seconds: 3_600 },
          { max: 10, seconds: 0.5 },
        ],
      },
    })
    assert.deepEqual(bySlug.get('news'), { key: 'k' })
    assert.deepEqual(bySlug.get('brand-new'), { url: 'https://brand.new' })
  })

  it('the settings of a process have the public address as clients spell it', () => {
    assert.equal(load({ BASE_URL: 'https://API.Example.org:443/' }).http.baseUrl, 'https://api.example.org')
    assert.equal(load({ BASE_URL: 'http://LocalHost:3000' }).http.baseUrl, 'http://localhost:3000')
  })

  it('the settings of a process of accounts: open sign-up, no mail, sign-in by OAuth if the address is safe', () => {
    assert.deepEqual(load().accounts, {
      signup: 'open',
      smtpUrl: undefined,
      mailFrom: 'agent-api-gateway@localhost',
      isOauthOn: true,
      accessTokenHours: 8,
      oidc: undefined,
    })
    assert.equal(load({ BASE_URL: 'http://api.example.org' }).accounts.isOauthOn, false)
    assert.equal(load({ BASE_URL: 'https://api.example.org' }).accounts.isOauthOn, true)
    assert.deepEqual(load({ SIGNUP: 'verified', SMTP_URL: 'smtps://u:p@mail', OAUTH: 'off' }).accounts, {
      signup: 'verified',
      smtpUrl: 'smtps://u:p@mail',
      mailFrom: 'agent-api-gateway@localhost',
      isOauthOn: false,
      accessTokenHours: 8,
      oidc: undefined,
    })
    assert.throws(() => load({ SIGNUP: 'verified' }), /SMTP_URL is required/)
    for (const kind of ['worker', 'probe', 'ops'] as const) {
      const { accounts } = loadProcessConfig(kind, { ...REQUIRED, SIGNUP: 'verified' })
      assert.equal(accounts.smtpUrl, undefined, `${kind} sends no mail`)
    }
  })

  it('the settings of a process tell an address of this machine from a public one', () => {
    for (const url of ['http://localhost:3000', 'http://127.0.0.1', 'http://[::1]:80', 'http://agw.localhost']) {
      assert.ok(isLocalAddress(url), url)
    }
    for (const url of [
      'https://api.example.org',
      'http://localhost.example.org',
      'http://10.0.0.7',
      'http://127.0.0.1.nip.io',
    ]) {
      assert.ok(!isLocalAddress(url), url)
    }
  })

  it('the settings of a process of one kind of process have the secrets that it needs and no other', () => {
    const { JWT_SECRET: _jwt, KEY_PEPPER: _pepper, OPERATOR_TOKEN: _token, ...rest } = REQUIRED
    const { secrets } = loadProcessConfig('worker', rest)
    assert.equal(secrets.encryption.length, 1)
    // An empty secret would let everybody in. So if a secret is missing, reading it throws.
    assert.throws(() => secrets.jwt, /JWT_SECRET/)
    assert.throws(() => secrets.keyPepper, /KEY_PEPPER/)
    assert.throws(() => secrets.operatorToken, /OPERATOR_TOKEN/)
    assert.throws(() => loadProcessConfig('web', rest), /JWT_SECRET/)
    assert.throws(() => loadProcessConfig('ops', rest), /OPERATOR_TOKEN/)
    const provider = {
      OIDC_ISSUER: 'https://id.example',
      OIDC_CLIENT_ID: 'x',
      OIDC_CLIENT_SECRET: 'y',
      OIDC_ACCOUNTS: 'on',
    }
    const kinds = ['web', 'ops', 'worker', 'probe'] as const
    const given = kinds.map((kind) => childEnvironment(kind, provider).OIDC_CLIENT_SECRET)
    assert.deepEqual(given, ['y', 'y', undefined, undefined])
    // A provider for accounts alone opens no console, and a worker knows of none.
    assert.equal(loadProcessConfig('web', { ...REQUIRED, ...provider }).accounts.oidc?.name, 'id.example')
    assert.equal(loadProcessConfig('ops', { ...REQUIRED, ...provider }).operatorAccess.oidc, undefined)
    assert.equal(loadProcessConfig('worker', { ...rest, ...provider, OIDC_CLIENT_SECRET: '' }).accounts.oidc, undefined)
    const unsafe = { ...REQUIRED, ...provider, BASE_URL: 'http://gateway.example' }
    assert.throws(() => loadProcessConfig('web', unsafe), /BASE_URL must be an https: address/)
    assert.throws(() => loadProcessConfig('web', { ...REQUIRED, OIDC_ACCOUNTS: 'on' }), /OIDC_ISSUER is required/)
    const child = childEnvironment('worker', { ...REQUIRED, X: '1' })
    assert.deepEqual(
      [child.X, child.JWT_SECRET, child.KEY_PEPPER, child.OPERATOR_TOKEN],
      ['1', ...Array(3).fill(undefined)],
    )
  })

  it('the settings of a process count an empty value as unset', () => {
    assert.equal(load({ PORT: '', BASE_URL: '', PLAN_LIMITS: '', UPSTREAM_NEWS_KEY: '' }).http.port, 3000)
  })

  it('the settings of a process may list earlier secrets after the current secret', () => {
    const [current, earlier] = [secret(), secret()]
    const { jwt } = load({ JWT_SECRET: `${current},${earlier}` }).secrets
    assert.deepEqual(
      jwt.map(({ bytes }) => bytes.toString('base64url')),
      [current, earlier],
    )
    assert.equal(new Set(jwt.map(({ id }) => id)).size, 2)
    for (const { id } of jwt) assert.ok(!current.includes(id) && !earlier.includes(id))
  })

  it('the settings of a process of npm start need no services and no secrets', () => {
    const settings = loadStartConfig({ PORT: '4000', JWT_SECRET: 'given' })
    assert.equal(settings.baseUrl, 'http://localhost:4000')
    assert.equal(settings.install, 'ask')
    assert.throws(() => loadStartConfig({ INSTALL: 'perhaps' }), /INSTALL must be ask or no/)
    assert.deepEqual(
      [{}, { LOG_LEVEL: '' }, { LOG_LEVEL: 'info' }].map((environment) => loadStartConfig(environment).isVerbose),
      [false, false, true],
    )
    const several = loadStartConfig({ PORT: '4000', WEB_NODES: '2', METRICS_PORT: '9000' })
    assert.deepEqual(
      [several.webPorts, several.metricsPorts],
      [
        [4000, 4010],
        [9000, 9001, 9002, 9003, 9004],
      ],
    )
    const chosen = loadStartConfig({ PORT: '0', WEB_NODES: '2' })
    assert.deepEqual([chosen.webPorts, new Set(chosen.metricsPorts)], [[0, 0], new Set([0])])
    assert.throws(
      () => loadStartConfig({ PORT: '65530', WEB_NODES: '2' }),
      /^Error: PORT must be at most 65525, because 2 processes /,
    )
    assert.throws(
      () => loadStartConfig({ METRICS_PORT: '65533' }),
      /^Error: METRICS_PORT must be at most 65532, because 4 processes /,
    )
    assert.equal(settings.databaseUrl, undefined)
    assert.equal(settings.redisUrl, undefined)
    assert.deepEqual(settings.secrets, { JWT_SECRET: 'given' })
  })
})

/** [variable, value]: a value that cannot be used. */
const UNUSABLE: [string, string][] = [
  ...['DATABASE_URL', 'REDIS_URL', 'JWT_SECRET', 'KEY_PEPPER', 'ENCRYPTION_KEY', 'OPERATOR_TOKEN'].map(
    (name): [string, string] => [name, ''],
  ),
  ...['-1', '65536', '80 ', '1e3', '0x50', '3000.5', 'http'].map((value): [string, string] => ['PORT', value]),
  ['OPS_PORT', '70000'],
  ['METRICS_PORT', 'on'],
  ['HTTP_REDIRECT_PORT', '99999'],
  ...[
    'localhost:3000',
    'ftp://host',
    'http://',
    'https://exa mple',
    'http://host:99999',
    'https://user:password@host',
    'https://host?x=1',
    'https://host/?',
    'https://host#f',
    // Pages and cookies of the portal stand at the root.
    'https://host/gateway',
    'https://host/gateway/',
    'https://host ',
  ].map((value): [string, string] => ['BASE_URL', value]),
  ['TLS_CERT_FILE', '/only/one.pem'],
  ['TLS_KEY_FILE', '/only/one.pem'],
  ...['true', '1', '10.0.0.0/33', '::1/129', 'proxy.example', '10.0.0.0/8,nonsense'].map((value): [string, string] => [
    'TRUST_PROXY',
    value,
  ]),
  // Every caller would choose the address that the gateway sees.
  ...['0.0.0.0/0', '::/0', '10.0.0.1,128.0.0.0/1', '8000::/1', '::ffff:0.0.0.0/96', '::/64'].map(
    (value): [string, string] => ['TRUST_PROXY', value],
  ),
  ['REDIS_URL', 'localhost:6379'],
  ['REDIS_URL', 'redis://localhost:6379/gateway'],
  ['DATABASE_URL', 'postgres://u:p%@host/database'],
  ['DNS_SERVERS', '127.0.0.1:0'],
  ['REDIS_URL', 'redis://a:1,http://b:2'],
  ['CACHE_REDIS_URL', 'memcached://a'],
  ['DNS_SERVERS', 'ns.example'],
  ['DNS_SERVERS', '127.0.0.1:70000'],
  ['DATABASE_URL', 'localhost:5432/gateway'],
  ['DATABASE_URL', 'postgres://u:p@host/database?sslmode=verify-full&sslrootcert=/nowhere/ca.pem'],
  ['SIGNUP', 'yes'],
  ['SMTP_URL', 'mail.example'],
  ['SMTP_URL', 'smtp://u:p@mail.example?requireTls=true'],
  ...['mail.example', 'a@mail.example\nBcc: b@mail.example', 'Gateway a@mail.example'].map(
    (value): [string, string] => ['SMTP_FROM', value],
  ),
  // Characters that no header can carry would fail every request to every source.
  ...['\u0141ukasz, a@mail.example', 'a@mail.example\nX: y'].map((value): [string, string] => ['CONTACT', value]),
  ...['two words', 'line\nbreak', 'k\u00e4y'].map((value): [string, string] => ['UPSTREAM_NEWS_KEY', value]),
  ['OIDC_CLIENT_ID', 'gateway'],
  ['OIDC_CLIENT_SECRET', 'its-secret'],
  ['OIDC_NAME', 'Example ID'],
  ['OIDC_OPERATOR_GROUPS', 'operators'],
  ['OIDC_VIEWER_GROUPS', 'staff'],
  ['OIDC_GROUPS_CLAIM', 'roles'],
  ['TRUSTED_GROUPS_HEADER', 'x-groups'],
  ['TRUSTED_HEADER_SECRET', secret()],
  ['SMTP_FROM', 'gateway@example.org'],
  ['CORS_ORIGINS', '*'],
  ['CORS_ORIGINS', 'https://app.example.com/'],
  ['CORS_ORIGINS', 'app.example.com'],
  ['OAUTH', 'true'],
  ...['0', '25', '1.5', '8h'].map((value): [string, string] => ['OAUTH_ACCESS_TOKEN_HOURS', value]),
  ['WORKERS', '0'],
  ['WORKERS', '1000'],
  ['WEB_NODES', '0'],
  ['CALL_TIMEOUT_MS', '50'],
  ['CALL_TIMEOUT_MS', '30s'],
  ...['{', 'null', '7', '[]', '"Free"', '{"Gold":{}}', '{"Free":7}', '{"Free":null}', '{"Free":{"perHour":1}}'].map(
    (value): [string, string] => ['PLAN_LIMITS', value],
  ),
  ...['0', '-1', '1.5', '"9"', 'null'].map((value): [string, string] => [
    'PLAN_LIMITS',
    `{"Free":{"perMinute":${value}}}`,
  ]),
  ['SIGNUP_PER_MINUTE', '-1'],
  ['LOGIN_FAILURES_PER_MINUTE', 'off'],
  ['LOG_LEVEL', 'loud'],
  ...[
    'weather.example',
    'file:///etc/passwd',
    'http://user@host',
    'http://:password@host',
    'http://host?x=1',
    'http://h#f',
    'http://h:0',
    'http://a..b',
    'http://*.example.com',
    `http://${'a'.repeat(64)}.example`,
    'http://224.0.0.1',
    'http://host ',
  ].map((value): [string, string] => ['UPSTREAM_WEATHER_URL', value]),
  ...['four', '0/60', '60/0', 'concurrency=0', 'concurrency=4,concurrency=5', '60:3600', '60/3600;', '1/-1'].map(
    (value): [string, string] => ['UPSTREAM_WEATHER_CAPS', value],
  ),
]

describe('a setting that cannot be used', () => {
  for (const [name, value] of UNUSABLE) {
    it(`a setting that cannot be used ends the boot with the name of its variable: ${name}=${value}`, () => {
      assert.throws(
        () => load({ [name]: value }),
        (error) => error instanceof ConfigError && error.message.includes(name),
      )
    })
  }

  it('a setting that is a list is refused with the form that its items must have', () => {
    const refuses = (name: string, value: string, message: RegExp) =>
      assert.throws(() => load({ [name]: value }), { name: 'Error', message })
    refuses('TRUST_PROXY', '10.0.0.1,proxy.example', /^TRUST_PROXY cannot be used: its item 2 must be an IP address, /)
    refuses('CORS_ORIGINS', 'https://a.example/', /must be an origin such as .* without a slash at its end$/)
    refuses('DNS_SERVERS', 'ns.example', /must be an IP address, such as 10\.0\.0\.2, /)
    refuses('BUILTIN_UPSTREAMS', 'Weather', /must be the slug of an API, such as weather$/)
    // The passwords would end the address, and the comma the item.
    for (const password of ['a/b', 'a,b', 'a#b', 'a?b'])
      refuses('REDIS_URL', `redis://:${password}@host`, /a comma as %2C/)
  })

  it('a setting that cannot be used is never shown when it is a secret', () => {
    for (const name of ['JWT_SECRET', 'KEY_PEPPER', 'ENCRYPTION_KEY', 'OPERATOR_TOKEN', 'REDIS_URL']) {
      assert.throws(
        () => load({ [name]: 'hunter2hunter2' }),
        (error) => error instanceof ConfigError && !error.message.includes('hunter2'),
      )
    }
  })
})

describe('a weak secret', () => {
  const weak = ['changeme', 'x'.repeat(64), 'abab'.repeat(20), secret(31), 'password'.repeat(8), `example${secret(40)}`]
  for (const name of ['JWT_SECRET', 'KEY_PEPPER', 'ENCRYPTION_KEY']) {
    it(`a weak secret is refused as ${name}`, () => {
      for (const value of [...weak, `${secret()} ${secret()}`, `${secret()}=`, `${secret()},${secret(16)}`]) {
        assert.throws(
          () => load({ [name]: value }),
          (error) => error instanceof ConfigError && error.message.includes(name),
        )
      }
    })
  }
  it('a weak secret is refused as OPERATOR_TOKEN', () => {
    // The last secrets fit into no `Authorization` header, or the log-in form would not accept
    // them.
    const unfit = [`${secret()} `, `${secret()}!`, `=${secret()}`, secret().repeat(30)]
    for (const value of ['changeme', 'a'.repeat(40), 'changeme'.repeat(5), secret().slice(0, 31), ...unfit]) {
      assert.throws(() => load({ OPERATOR_TOKEN: value }), /OPERATOR_TOKEN/)
    }
  })
})

describe('TLS', () => {
  it('TLS settings are refused if BASE_URL is not an https: address', () => {
    const files = { TLS_CERT_FILE: '/c.pem', TLS_KEY_FILE: '/k.pem' }
    for (const settings of [files, { HTTP_REDIRECT_PORT: '80' }, { ...files, BASE_URL: 'http://api.example.org' }]) {
      assert.throws(() => load(settings), /BASE_URL/)
    }
  })
})

describe('a secret in a file', () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'agw-secrets-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  async function fileWith(text: string): Promise<string> {
    const path = join(folder, secret(6))
    await writeFile(path, text)
    return path
  }

  it('a secret in a file counts as the setting itself, with or without a line break at its end', async () => {
    const { DATABASE_URL = '', REDIS_URL = '', ...secrets } = REQUIRED
    const [jwt, database, news] = [secret(), 'postgres://a:b@c/d', 'key-of-news']
    const environment = {
      ...{ ...secrets, JWT_SECRET: '', JWT_SECRET_FILE: await fileWith(`${jwt}\n`) },
      ...{ DATABASE_URL_FILE: await fileWith(database), REDIS_URL_FILE: await fileWith(`${REDIS_URL}\r\n`) },
      UPSTREAM_NEWS_KEY_FILE: await fileWith(`${news}\n`),
      // Not a secret: the file itself is the setting.
      ...{ BASE_URL: 'https://x.example', TLS_CERT_FILE: '/c.pem', TLS_KEY_FILE: '/k.pem' },
    }
    const config = loadConfig(environment)
    assert.deepEqual(
      config.secrets.jwt.map(({ bytes }) => bytes.toString('base64url')),
      [jwt],
    )
    assert.equal(config.databaseUrl, database)
    assert.deepEqual(config.redisUrls, [REDIS_URL])
    assert.equal(config.upstreams.bySlug.get('news')?.key, news)
    assert.deepEqual(config.http.tls, { certFile: '/c.pem', keyFile: '/k.pem' })
    assert.ok(DATABASE_URL)
    const started = loadStartConfig(environment)
    assert.equal(started.databaseUrl, database)
    assert.equal(started.secrets.JWT_SECRET, jwt)
    // npm start hands on what it has read, so its processes see no second source.
    assert.equal(loadConfig({ ...started.environment, ...started.secrets }).databaseUrl, database)
  })

  it('a secret in a file that cannot be read, is empty or is given twice ends the process with the name of the variable', async () => {
    const refuses = (environment: Record<string, string>, message: RegExp) =>
      assert.throws(
        () => load(environment),
        (error) => error instanceof ConfigError && message.test(error.message),
      )
    refuses({ JWT_SECRET: '', JWT_SECRET_FILE: join(folder, 'none') }, /^JWT_SECRET_FILE cannot be read: ENOENT/)
    refuses({ JWT_SECRET: '', JWT_SECRET_FILE: folder }, /^JWT_SECRET_FILE cannot be read: EISDIR/)
    refuses({ JWT_SECRET: '', JWT_SECRET_FILE: await fileWith('\n') }, /^JWT_SECRET_FILE names an empty file/)
    refuses({ JWT_SECRET_FILE: await fileWith(secret()) }, /^JWT_SECRET and JWT_SECRET_FILE are both set/)
    refuses({ JWT_SECRET: '', JWT_SECRET_FILE: await fileWith('short') }, /^JWT_SECRET must be 32 random bytes/)
  })

  it('a secret in a file is not handed to a process of another kind', () => {
    const names = ['JWT_SECRET_FILE', 'DATABASE_URL_FILE', 'UPSTREAM_NEWS_KEY_FILE']
    const before = names.map((name) => process.env[name])
    try {
      for (const name of names) process.env[name] = '/run/secrets/x'
      const environment = childEnvironment('worker', { DATABASE_URL: 'postgres://x' })
      assert.deepEqual(
        names.map((name) => environment[name]),
        [undefined, undefined, '/run/secrets/x'],
      )
    } finally {
      for (const [index, name] of names.entries()) {
        if (before[index] === undefined) delete process.env[name]
        else process.env[name] = before[index]
      }
    }
  })
})

it('a refused limit of a plan says whether its plan, its name or its number is wrong', () => {
  const limits = (text: string) => () => load({ PLAN_LIMITS: text })
  assert.throws(limits('{"Gold":{}}'), /names the plan Gold, which does not exist; the plans are Free, Pro, /)
  assert.throws(limits('{"Free":{"perHour":1}}'), /Free has no limit perHour; its limits are perMinute, /)
  assert.throws(limits('{"Free":{"perMinute":0}}'), /Free\.perMinute must be a whole number from 1 to 999999999999999$/)
  // A header cannot carry more digits.
  assert.throws(limits('{"Free":{"perMonth":1000000000000000}}'), /Free\.perMonth must be a whole number from 1 /)
})

it('several secrets that are missing are named in one sentence', () => {
  assert.throws(() => loadProcessConfig('web', { REDIS_URL: 'redis://x', KEY_PEPPER: secret() }), {
    message: 'JWT_SECRET, ENCRYPTION_KEY and DATABASE_URL are required: see src/docs/operators/configuration.md',
  })
})

describe('the share of calls that is traced', () => {
  const traces = (environment: Record<string, string>) =>
    load({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', ...environment }).traces

  it('the share of calls that is traced is what the variables of OpenTelemetry say', () => {
    assert.deepEqual(load().traces, { isTraced: false, traceRatio: 1 })
    assert.deepEqual(traces({}), { isTraced: true, traceRatio: 1 })
    assert.deepEqual(traces({ OTEL_SDK_DISABLED: 'TRUE' }), { isTraced: false, traceRatio: 1 })
    assert.equal(traces({ OTEL_TRACES_SAMPLER: 'always_off' }).traceRatio, 0)
    for (const sampler of ['traceidratio', 'parentbased_traceidratio'])
      assert.equal(traces({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: '0.01' }).traceRatio, 0.01)
    assert.equal(traces({ OTEL_TRACES_SAMPLER: 'parentbased_always_off' }).traceRatio, 0)
    for (const share of ['', ' '])
      assert.equal(traces({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: share }).traceRatio, 1)
  })

  it('a process stops with the name of the variable if the share of traced calls is not valid', () => {
    const ratio = { OTEL_TRACES_SAMPLER: 'traceidratio' }
    for (const share of ['2', '-0.1', 'x'])
      assert.throws(() => traces({ ...ratio, OTEL_TRACES_SAMPLER_ARG: share }), /OTEL_TRACES_SAMPLER_ARG must be/)
    assert.throws(() => traces({ OTEL_TRACES_SAMPLER: 'jaeger_remote' }), /OTEL_TRACES_SAMPLER must be/)
  })
})
