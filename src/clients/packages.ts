/**
 * A client as a package for npm or PyPI: the contents of its files, by their paths within the
 * package.
 */
export type PackageFiles = Record<string, string>

/** What both packages say about their gateway and version. */
export interface PackageFacts {
  baseUrl: string
  /** Semantic version. */
  version: string
}

/**
 * The npm package: the client as source, and the compiler settings that build it. It is marked as
 * private and has no licence; whoever publishes it decides both.
 */
export function npmPackage(client: string, { baseUrl, version }: PackageFacts): PackageFiles {
  const about = {
    name: 'agent-api-gateway-client',
    version,
    description: `Typed client of the Agent API Gateway at ${baseUrl}`,
    private: true,
    license: 'UNLICENSED',
    type: 'module',
    sideEffects: false,
    engines: { node: '>=20' },
    main: './dist/index.js',
    types: './dist/index.d.ts',
    exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' } },
    files: ['dist', 'README.md'],
    scripts: { build: 'tsc' },
  }
  const compiler = {
    compilerOptions: {
      target: 'es2022',
      module: 'nodenext',
      lib: ['es2022', 'dom', 'dom.iterable'],
      types: [],
      strict: true,
      declaration: true,
      rootDir: 'src',
      outDir: 'dist',
    },
    include: ['src'],
  }
  return {
    'package.json': json(about),
    'tsconfig.json': json(compiler),
    'src/index.ts': client,
    'README.md': npmReadme(baseUrl),
  }
}

/**
 * The PyPI package, typed and without dependencies. A classifier makes PyPI refuse it until its
 * publisher has chosen a licence.
 */
export function pypiPackage(client: string, { baseUrl, version }: PackageFacts): PackageFiles {
  const project = [
    '[build-system]',
    'requires = ["setuptools>=61"]',
    'build-backend = "setuptools.build_meta"',
    '',
    '[project]',
    'name = "agent-api-gateway-client"',
    `version = ${JSON.stringify(version)}`,
    `description = ${JSON.stringify(`Typed client of the Agent API Gateway at ${baseUrl}`)}`,
    'readme = "README.md"',
    'requires-python = ">=3.9"',
    '# Choose a licence, then take the classifier "Private" away: PyPI refuses packages that have it.',
    'classifiers = ["Private :: Do Not Upload", "Typing :: Typed"]',
    '',
    '[tool.setuptools.packages.find]',
    'where = ["src"]',
    '',
    '[tool.setuptools.package-data]',
    'agent_api_gateway = ["py.typed"]',
    '',
  ]
  return {
    'pyproject.toml': project.join('\n'),
    'src/agent_api_gateway/__init__.py': client.replaceAll('from client import', 'from agent_api_gateway import'),
    'src/agent_api_gateway/py.typed': '',
    'README.md': pypiReadme(baseUrl),
  }
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** The part that both READMEs have after their examples. */
const BEHAVIOUR = [
  '## Retries and waits',
  '',
  'If a retry may help, the client waits as `Retry-After` says and makes the call again, up to twice. If the wait is longer than a',
  'minute, it throws the error at once. It retries in the same way if a connection fails. It repeats a call that changes something',
  'only if the call was refused, or if no connection was opened.',
  '',
  'Two codes come from the client: `NO_ANSWER` if no answer arrived in time or at all, and `INVALID_ANSWER` if something other than',
  'the gateway answered, such as a proxy.',
]

function npmReadme(baseUrl: string): string {
  return [
    '# agent-api-gateway-client',
    '',
    `Typed client of the Agent API Gateway at ${baseUrl}, made from its catalog. No dependencies; Node 20 or newer, Deno, Bun and browsers.`,
    '',
    'Install it from its folder or from the file that `npm pack` makes of the folder, for example `npm install ../packages/npm`. Set `AGW_API_KEY` to your key.',
    '',
    '```ts',
    "import { env } from 'node:process'",
    "import { Gateway, GatewayError } from 'agent-api-gateway-client'",
    '',
    "const gateway = new Gateway({ key: env.AGW_API_KEY ?? '' })",
    'const weather = await gateway.weather.current({ latitude: 40.71, longitude: -74.01 })',
    '',
    '// With the metadata of the answer.',
    "const { data, meta } = await gateway.answer('currency/latest')",
    'console.log(data.base, meta.requestId, meta.cache, meta.rateLimit)',
    '',
    '// Many calls at once, each with data or an error.',
    "const { results } = await gateway.batch([{ api: 'currency', endpoint: 'latest' }])",
    'for (const { status, data, error } of results) console.log(status, data ?? error?.code)',
    '',
    '// A call that may wait long.',
    "const started = await gateway.start('currency/latest')",
    'const later = await started.result()',
    '',
    '// A failure says what to do next.',
    'try {',
    '  await gateway.weather.current({ latitude: 100, longitude: 0 })',
    '} catch (error) {',
    '  if (!(error instanceof GatewayError)) throw error',
    '  console.error(error.code, error.hint)',
    '}',
    '```',
    '',
    'A `GatewayError` has `code`, `hint`, `status`, `retryAfter`, `requestId` and `callId`.',
    '',
    '| option | meaning |',
    '|---|---|',
    '| `key` | API key, session token or access token |',
    `| \`baseUrl\` | the gateway; by default ${baseUrl} |`,
    '| `timeoutMs` | longest wait for one answer; by default ten seconds more than a call may take |',
    '| `retriesMax`, `retryWaitMsMax` | how often a call is retried (2), and the longest wait before a retry (60,000) |',
    '| `onRetry`, `onAnswer` | are called before each wait, and with the metadata of each answer |',
    '| `fetch` | a function in place of `fetch`, which sends the requests |',
    '',
    ...BEHAVIOUR,
    '',
    '## Publishing',
    '',
    '`dist` is built. If you change `src`, run `npm install --no-save typescript`, then `npm run build`. The package is private and has no licence:',
    'choose a licence in `package.json`, remove `private`, then `npm publish`.',
    '',
  ].join('\n')
}

/** Programs that run unchanged after the package is installed and the key is set. */
const PYTHON_SAMPLES = [
  '```python',
  'import os',
  'from agent_api_gateway import Gateway, GatewayError',
  '',
  'gateway = Gateway(os.environ["AGW_API_KEY"])',
  'weather = gateway.weather.current(latitude=40.71, longitude=-74.01)',
  '',
  '# With the metadata of the answer.',
  'answer = gateway.answer("currency", "latest")',
  'print(answer.data["base"], answer.meta.request_id, answer.meta.cache, answer.meta.rate_limit)',
  '',
  '# Many calls at once, each with data or an error.',
  'for result in gateway.batch([{"api": "currency", "endpoint": "latest"}])["results"]:',
  '    print(result["status"], result.get("data") or result.get("error"))',
  '',
  '# A call that may wait long.',
  'later = gateway.start("currency", "latest").result()',
  '',
  '# A failure says what to do next.',
  'try:',
  '    gateway.weather.current(latitude=100, longitude=0)',
  'except GatewayError as error:',
  '    print(error.code, error.hint)',
  '```',
  '',
  'For asyncio:',
  '',
  '```python',
  'import asyncio',
  'import os',
  'from agent_api_gateway import AsyncGateway',
  '',
  'async def main() -> None:',
  '    async with AsyncGateway(os.environ["AGW_API_KEY"]) as gateway:',
  '        weather = await gateway.weather.current(latitude=40.71, longitude=-74.01)',
  '        print(weather["temperature_c"])',
  '',
  'asyncio.run(main())',
  '```',
]

function pypiReadme(baseUrl: string): string {
  return [
    '# agent-api-gateway-client',
    '',
    `Typed client of the Agent API Gateway at ${baseUrl}, made from its catalog. Python 3.9 or newer, no dependencies.`,
    '',
    'Install it from its folder, for example `pip install ../packages/pypi`. Set `AGW_API_KEY` to your key.',
    '',
    ...PYTHON_SAMPLES,
    '',
    'Its requests run in threads, at most 32 at once, because Python’s standard library has no HTTP client for asyncio. If the task of a call is',
    'cancelled, the client closes the connection, and the gateway withdraws the call.',
    '',
    'A `GatewayError` has `code`, `hint`, `status`, `retry_after`, `request_id` and `call_id`.',
    '',
    '| option of both classes | meaning |',
    '|---|---|',
    '| `key` | API key, session token or access token |',
    `| \`base_url\` | the gateway; by default ${baseUrl} |`,
    '| `timeout` | longest wait for one answer, seconds; by default ten seconds more than a call may take |',
    '| `retries_max`, `retry_wait_max` | how often a call is retried (2), and the longest wait before a retry, seconds (60) |',
    '| `on_retry`, `on_answer` | are called before each wait, and with the metadata of each answer |',
    '',
    ...BEHAVIOUR,
    '',
    '## Publishing',
    '',
    '`python -m build` writes a wheel. PyPI refuses the package until you choose a licence and remove the classifier `Private`.',
    '',
  ].join('\n')
}
