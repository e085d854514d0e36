import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { after, it } from 'node:test'

const SCRIPT = resolve(import.meta.dirname, '../../deploy/upgrade.sh')

/** Stands in for Docker: notes what it is asked, and has the network `$MADE`, where that is set, and no container. */
const DOCKER = `#!/bin/sh
echo "$*" >> "$NOTES"
case "$*" in
  'compose config') cat "$CONFIG" ;;
  'network ls '*'label=com.docker.compose.project=gateway '*) [ -z "$MADE" ] || echo 0a1b ;;
  'network inspect '*' 0a1b') echo "$MADE " ;;
esac
`

/** What `docker compose config` writes, with a network that an operator added. */
const CONFIG = `name: gateway
services:
  web:
    environment:
      TRUST_PROXY: 10.201.0.0/24
    networks:
      default: null
networks:
  another:
    name: gateway_another
    ipam:
      config:
        - subnet: 10.9.0.0/24
  default:
    name: gateway_default
    ipam:
      config:
        - subnet: 10.201.0.0/24
volumes:
  redis:
    name: gateway_redis
`

const folder = await mkdtemp(join(tmpdir(), 'upgrade-'))
after(() => rm(folder, { recursive: true }))
await writeFile(join(folder, 'docker'), DOCKER, { mode: 0o755 })
await writeFile(join(folder, 'config.yaml'), CONFIG)

async function upgrade(made: string): Promise<{ code: unknown; errors: string; asked: string[] }> {
  const notes = join(folder, 'notes')
  await rm(notes, { force: true })
  const env = {
    ...{ PATH: folder + delimiter + process.env.PATH, MADE: made },
    ...{ NOTES: notes, CONFIG: join(folder, 'config.yaml') },
  }
  const { code, errors } = await new Promise<{ code: unknown; errors: string }>((done) => {
    execFile('sh', [SCRIPT], { env, timeout: 30_000 }, (error, _, errors) => done({ code: error?.code ?? 0, errors }))
  })
  return { code, errors, asked: (await readFile(notes, 'utf8')).trim().split('\n') }
}

it('an upgrade changes nothing and says what to do where the network of the containers is not that of the compose file', async () => {
  const { code, errors, asked } = await upgrade('172.18.0.0/16')
  assert.equal(code, 1)
  assert.match(errors, /172\.18\.0\.0\/16.* 10\.201\.0\.0\/24/s)
  assert.match(errors, /docker compose build && docker compose down && docker compose up --detach/)
  assert.deepEqual(
    asked.filter((words) => !/^(compose config|network (ls|inspect)\b.*)$/.test(words)),
    [],
  )
})

it('an upgrade builds and migrates where the network of the containers is that of the compose file, or is not made yet', async () => {
  for (const made of ['10.201.0.0/24', 'fd00::/64 10.201.0.0/24', '']) {
    const { code, errors, asked } = await upgrade(made)
    assert.equal(code, 0, errors)
    assert.ok(asked.indexOf('compose build') < asked.indexOf('compose run --rm release'), made)
    assert.ok(asked.includes('compose build'), made)
  }
})
