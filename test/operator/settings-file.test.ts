import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { UsageError } from '../../src/operator/command-line.ts'
import { readSettingsFile } from '../../src/operator/settings-file.ts'

describe('a file of settings', () => {
  let folder = ''
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'settings-'))
    await writeFile(join(folder, 'key'), 'k3y\n')
    await writeFile(join(folder, 'empty'), '')
  })
  after(() => rm(folder, { recursive: true }))

  const read = async (text: string | Buffer) => {
    const file = join(folder, 'gateway.yaml')
    await writeFile(file, text)
    return await readSettingsFile(file, (name) => (name === 'THE_KEY' ? 'from-env' : undefined))
  }

  /** The lines of the refusal. */
  const refusal = async (text: string | Buffer): Promise<string> => {
    const error = await read(text).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    if (!(error instanceof UsageError)) assert.fail(`${text}: ${error}`)
    assert.match(error.message, /^Nothing was changed\.\n/)
    return error.message
  }

  it('a file of settings has the keys that it refers to, and repeats a part by an alias', async () => {
    const text = [
      'upstreams:',
      '  weather: { caps: &caps { concurrency: 2, rates: [{ max: 5, seconds: 1 }] }, enabled: true }',
      '  news: { caps: *caps, key: { env: THE_KEY }, paused: null }',
      `  trivia: { key: { file: ${join(folder, 'key')} }, tierRequired: pro }`,
    ]
    const { upstreams } = await read(text.join('\n'))
    const caps = { concurrency: 2, rates: [{ max: 5, seconds: 1 }] }
    assert.deepEqual(upstreams, {
      weather: { caps, enabled: true },
      news: { caps, key: 'from-env', paused: null },
      trivia: { key: 'k3y', tierRequired: 'pro' },
    })
  })

  it('a file of settings may come from standard input, for a command line that runs in a container', () => {
    const cli = fileURLToPath(new URL('../../src/operator-cli.ts', import.meta.url))
    const options = { input: 'upstream: {}', encoding: 'utf8', env: { OPERATOR_TOKEN: 'x'.repeat(32) } } as const
    const { stderr, status } = spawnSync(process.execPath, [cli, 'apply', '-'], options)
    assert.match(stderr, /^Nothing was changed\.\n.*standard input.*The file has no member upstream here/)
    assert.equal(status, 1)
  })

  it('a file of settings with a mistake is refused with a line, a pointer and a sentence', async () => {
    const weather = (settings: string) => `upstreams:\n  weather: ${settings}\n`
    const cases: [string | Buffer, RegExp][] = [
      ['', /gateway\.yaml: The file is empty/],
      ['upstreams: [', /neither JSON nor YAML/],
      ['upstreams: []', /\/upstreams: The value must be an object/],
      ['upstream: {}', /\/upstream: The file has no member upstream here; did you mean upstreams\?/],
      ['plans: {}', /\/plans: The file has no member plans here; its members are upstreams\./],
      ['upstreams:\n\tweather: {}', /gateway\.yaml:2: .*Tabs/],
      ['upstreams: {}\n---\nupstreams: {}', /several YAML documents/],
      [Buffer.from('upstreams: {}', 'utf16le'), /neither JSON nor YAML|not UTF-8|must be an object|name of a member/],
      [
        weather('{ tier: pro }'),
        /gateway\.yaml:2 \/upstreams\/weather\/tier: The file has no member tier here; did you mean tierRequired\?/,
      ],
      [
        weather('{ tierRequired: gold }'),
        /\/tierRequired: The value must be one of developer, pro, business, enterprise\./,
      ],
      [weather("{ enabled: 'yes' }"), /\/enabled: The value must be true or false or null\./],
      [weather('{ enabled: yes }'), /\/enabled: The value must be true or false or null\./],
      [weather("{ caps: { concurrency: '4' } }"), /\/caps\/concurrency: The value must be a whole number\./],
      [weather('{ caps: { concurrency: 0 } }'), /\/caps\/concurrency: The value must be at least 1\./],
      [weather('{ caps: { concurrency: 4.5 } }'), /\/caps\/concurrency: The value must be a whole number\./],
      [weather('{ caps: { concurrency: .inf } }'), /infinite/],
      [weather('{ caps: { concurency: 4 } }'), /\/caps\/concurency: .*did you mean concurrency\?/],
      [weather('{ caps: { rates: [{ max: 5 }] } }'), /\/caps\/rates\/0: The file lacks seconds\./],
      [weather('{ caps: { rates: { max: 5, seconds: 1 } } }'), /\/caps\/rates: The value must be a list\./],
      [weather('{ paused: true }'), /\/paused: The value must be one of hold, refuse\./],
      [weather('null'), /\/upstreams\/weather: The value must be an object\./],
      [weather('{ enabled: true, enabled: false }'), /The member enabled appears twice/],
      [
        `${weather('{ enabled: true }')}  weather: { enabled: false }\n`,
        /gateway\.yaml:3: The member weather appears twice/,
      ],
      [`a: &a { enabled: true }\n${weather('{ <<: *a }')}`, /has no merge key/],
      ['upstreams: { constructor: { enabled: true } }', /constructor, which a document must not use/],
      [weather('{ key: written-here }'), /\/key: The file must not contain a key itself/],
      [weather('{ key: { env: NOT_THERE } }'), /There is no key in NOT_THERE/],
      [weather('{ key: { env: a b } }'), /The file must not contain a key itself/],
      [weather(`{ key: { file: ${join(folder, 'none')} } }`), /The file \/.*none cannot be read/],
      [weather(`{ key: { file: ${join(folder, 'empty')} } }`), /There is no key in \/.*empty/],
    ]
    for (const [text, expected] of cases) assert.match(await refusal(text), expected, String(text))
  })
})
