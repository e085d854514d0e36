import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'

const HELP = `Usage: node test/tools/generators.ts --key <test key> [--url http://localhost:3000] [--keep]

Makes clients from the document of a running gateway as a newcomer would, with the generators' newest known releases:
openapi-typescript with openapi-fetch, @hey-api/openapi-ts, swagger-typescript-api, oazapfts, orval, kubb, and Postman's
own converter. The natural lines must compile under strict rules, with all that was generated, and print a temperature;
the first call of the collection must be answered 200. Installs the generators into a temporary folder, because they
are 300 packages and 200 MB (about two minutes, needs the package registry; their install scripts do not run).

Exit code: 0 all of them work, 1 one does not, 2 the run could not start.`

const run = promisify(execFile)

const PACKAGES = [
  '@hey-api/openapi-ts@0.99.0',
  '@kubb/cli@4.39.3',
  '@kubb/core@4.39.3',
  '@kubb/plugin-client@4.39.3',
  '@kubb/plugin-oas@4.39.3',
  '@kubb/plugin-ts@4.39.3',
  '@oazapfts/runtime@1.2.0',
  'oazapfts@6.4.0',
  'openapi-fetch@0.17.0',
  'openapi-to-postmanv2@6.3.3',
  'openapi-typescript@7.13.0',
  'orval@8.38.0',
  'swagger-typescript-api@13.13.0',
  'tsx@4.23.15',
  'typescript@5.9.3',
]

/**
 * The commands that run a generator in the folder, and the lines that somebody writes with its
 * client.
 */
interface Generator {
  command: string[]
  lines: string
}

const GENERATORS: Record<string, Generator> = {
  'openapi-fetch': {
    command: ['openapi-typescript', 'openapi.json', '-o', 'paths.ts'],
    lines: `import createClient from 'openapi-fetch'
import type { paths } from './paths'
const client = createClient<paths>({ baseUrl: process.env.URL, headers: { 'X-Api-Key': process.env.KEY } })
const { data, error } = await client.GET('/v1/call/weather/current', {
  params: { query: { latitude: 40.71, longitude: -74.01 } },
})
if (error) throw new Error(error.error.code)
const celsius: number | null = data.data.temperature_c
console.log(celsius)`,
  },
  'hey-api': {
    command: ['openapi-ts', '-i', 'openapi.json', '-o', 'hey'],
    lines: `import { weatherCurrent } from './hey'
import { client } from './hey/client.gen'
client.setConfig({ baseUrl: process.env.URL, auth: () => process.env.KEY })
const { data, error } = await weatherCurrent({ query: { latitude: 40.71, longitude: -74.01 } })
if (error || !data) throw new Error(JSON.stringify(error))
const celsius: number | null = data.data.temperature_c
console.log(celsius)`,
  },
  'swagger-typescript-api': {
    command: ['swagger-typescript-api', 'generate', '-p', 'openapi.json', '-o', '.', '-n', 'Api.ts'],
    lines: `import { Api } from './Api'
const api = new Api({ baseUrl: process.env.URL, baseApiParams: { headers: { 'X-Api-Key': process.env.KEY ?? '' } } })
const { data } = await api.v1.weatherCurrent({ latitude: 40.71, longitude: -74.01 })
const celsius: number | null = data.data.temperature_c
console.log(celsius)`,
  },
  oazapfts: {
    command: ['oazapfts', 'openapi.json', 'oaz.ts'],
    lines: `import { defaults, weatherCurrent } from './oaz'
defaults.baseUrl = process.env.URL ?? ''
const { data: answer } = await weatherCurrent(40.71, -74.01, { headers: { 'X-Api-Key': process.env.KEY } })
if (answer.status !== 'success') throw new Error(answer.error.code)
const celsius: number | null = answer.data.temperature_c
console.log(celsius)`,
  },
  orval: {
    command: ['orval', '--config', 'orval.config.mjs'],
    lines: `import { weatherCurrent } from './orval'
const headers = { 'X-Api-Key': process.env.KEY ?? '' }
const answer = await weatherCurrent({ latitude: 40.71, longitude: -74.01 }, { headers })
if (answer.status !== 200) throw new Error(JSON.stringify(answer.data))
const celsius: number | null = answer.data.data.temperature_c
console.log(celsius)`,
  },
  kubb: {
    command: ['kubb', 'generate', '--config', 'kubb.config.mjs'],
    lines: `import { weatherCurrent } from './kubb'
const headers = { 'X-Api-Key': process.env.KEY ?? '' }
const { data } = await weatherCurrent({ latitude: 40.71, longitude: -74.01 }, { headers })
const celsius: number | null = data.temperature_c
console.log(celsius)`,
  },
}

/** Settings of the generators that take settings only from a file. */
const SETTINGS = {
  'orval.config.mjs': (url: string) =>
    `export default { gateway: { input: './openapi.json', output: { target: './orval.ts', client: 'fetch', baseUrl: '${url}' } } }`,
  'kubb.config.mjs': (url: string) =>
    `import { defineConfig } from '@kubb/core'
import { pluginClient } from '@kubb/plugin-client'
import { pluginOas } from '@kubb/plugin-oas'
import { pluginTs } from '@kubb/plugin-ts'
export default defineConfig({
  root: '.',
  input: { path: './openapi.json' },
  output: { path: './kubb', clean: true },
  plugins: [pluginOas(), pluginTs(), pluginClient({ client: 'fetch', baseURL: '${url}' })],
})`,
}

// Kubb writes imports with the extension of the file.
const COMPILER_OPTIONS =
  '--noEmit --strict --target es2022 --module esnext --moduleResolution bundler --skipLibCheck --types node --allowImportingTsExtensions'.split(
    ' ',
  )

interface Gateway {
  url: string
  key: string
}

process.exitCode = await main()

async function main(): Promise<number> {
  const options = {
    url: { type: 'string', default: 'http://localhost:3000' },
    key: { type: 'string' },
    keep: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  } as const
  const { values } = parseArgs({ options })
  const { key, url } = values
  if (values.help || key === undefined) {
    console.log(HELP)
    return values.help ? 0 : 2
  }
  const folder = await mkdtemp(join(tmpdir(), 'agw-generators-'))
  try {
    await prepare(folder, url)
    const checks = [
      ...Object.entries(GENERATORS).map(([name, generator]) => ({
        name,
        check: () => checkClient(folder, { name, ...generator }, { url, key }),
      })),
      { name: 'postman', check: () => checkCollection(folder, { url, key }) },
    ]
    let failures = 0
    for (const { name, check } of checks) {
      const outcome = await check().catch((error) => {
        failures += 1
        return `FAILED: ${error.stdout || error.message}`
      })
      console.log(`${name.padEnd(24)}${outcome}`)
    }
    return failures === 0 ? 0 : 1
  } finally {
    if (values.keep) console.log(folder)
    else await rm(folder, { recursive: true, force: true })
  }
}

async function prepare(folder: string, url: string): Promise<void> {
  await writeFile(join(folder, 'package.json'), '{"type":"module","private":true}')
  await writeFile(join(folder, 'openapi.json'), await (await fetch(`${url}/openapi.json`)).text())
  console.log('Installing the generators …')
  for (const [file, settings] of Object.entries(SETTINGS)) await writeFile(join(folder, file), settings(url))
  const quietly = ['--no-audit', '--no-fund', '--ignore-scripts']
  await run('npm', ['install', ...quietly, ...PACKAGES, '@types/node@24'], { cwd: folder })
}

/**
 * Generates, compiles and runs the lines.
 * @returns what they printed
 */
async function checkClient(
  folder: string,
  { name, command, lines }: Generator & { name: string },
  { url, key }: Gateway,
): Promise<string> {
  const bin = (tool: string) => join(folder, 'node_modules/.bin', tool)
  const [tool = '', ...args] = command
  await run(bin(tool), args, { cwd: folder })
  const file = `${name}-lines.ts`
  await writeFile(join(folder, file), `${lines}\n`)
  await run(bin('tsc'), [...COMPILER_OPTIONS, file], { cwd: folder })
  const { stdout } = await run(bin('tsx'), [file], { cwd: folder, env: { ...inherited(), URL: url, KEY: key } })
  if (!/^-?\d+(\.\d+)?$/.test(stdout.trim())) throw new Error(`printed ${stdout}`)
  return `${lines.split('\n').length} lines compile and print ${stdout.trim()}`
}

/** The variables of this process' environment that a tool needs. */
function inherited(): Record<string, string> {
  return { PATH: `${join(process.execPath, '..')}:/usr/local/bin:/usr/bin:/bin` }
}

interface PostmanItem {
  name: string
  item?: PostmanItem[]
  request?: {
    method: string
    header?: { key: string; value: string; disabled?: boolean }[]
    url: { path: string[]; query?: { key: string; value: string; disabled?: boolean }[] }
  }
}

/**
 * Sends the first call of an API as the converter wrote it, with the key.
 * @returns the status of its answer
 */
async function checkCollection(folder: string, { url, key }: Gateway): Promise<string> {
  const options = 'folderStrategy=Tags,parametersResolution=Example'
  const bin = join(folder, 'node_modules/.bin/openapi2postmanv2')
  await run(bin, ['-s', 'openapi.json', '-o', 'collection.json', '-O', options], { cwd: folder })
  const collection = JSON.parse(await readFile(join(folder, 'collection.json'), 'utf8')) as { item: PostmanItem[] }
  const first = collection.item.find(({ name }) => name === 'Weather')?.item?.[0]?.request
  if (!first) throw new Error('the collection has no call of Weather')
  const given = <T extends { disabled?: boolean }>(list: T[] = []) => list.filter(({ disabled }) => !disabled)
  const headers = Object.fromEntries(given(first.header).map((header) => [header.key, header.value]))
  const query = new URLSearchParams(given(first.url.query).map((one): [string, string] => [one.key, one.value]))
  const answer = await fetch(`${url}/${first.url.path.join('/')}?${query}`, {
    headers: { ...headers, 'x-api-key': key },
  })
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`)
  return `first call answered 200, headers sent: ${Object.keys(headers).join(', ')}`
}
