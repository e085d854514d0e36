import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { after, it } from 'node:test'

const SCRIPT = resolve(import.meta.dirname, '../../deploy/upgrade.sh')

/**
 * Stands in for Docker: it writes down its arguments, and has the network `$MADE`, if that is set,
 * and no container.
 */
const DOCKER = `#!/bin/sh
echo "$*" >> "$NOTES"
case "$*" in
  'compose config') cat "$CONFIG" ;;
  'network ls '*'label=com.docker.compose.project=gateway '*) [ -z "$MADE" ] || echo 0a1b ;;
  'network inspect '*' 0a1b') echo "$MADE " ;;
  'image inspect '*) cat "$IMAGE_ID" ;;
  'compose build') echo sha256:new > "$IMAGE_ID" ;;
  'tag '*) echo "$2" > "$IMAGE_ID" ;;
esac
case "$*" in "$FAILS") exit 1 ;; esac
`

/** What `docker compose config` writes, with a network that an operator added. */
const CONFIG = `name: gateway
services:
  release:
    build:
      context: .
    image: registry.example.org:5000/gateway
  ops:
    command:
      - node
      - src/ops.ts
    image: registry.example.org:5000/gateway
  probe:
    command:
      - node
      - workers/probe.ts
    image: registry.example.org:5000/gateway
  weather-worker:
    command:
      - node
      - --no-incremental-marking-task
      - workers/worker.ts
    environment:
      WORKER_UPSTREAMS: weather
    image: registry.example.org:5000/gateway
  web:
    command:
      - node
      - src/server.ts
    image: another
    environment:
      TRUST_PROXY: 10.201.0.0/24
    networks:
      default: null
  worker:
    command:
      - node
      - --no-incremental-marking-task
      - workers/worker.ts
    image: registry.example.org:5000/gateway
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

interface Upgrade {
  code: unknown
  errors: string
  asked: string[]
  /** The image to which the name in the compose file leads in the end. */
  image: string
}

async function upgrade(made: string, { fails = 'nothing', words = [] as string[] } = {}): Promise<Upgrade> {
  await writeFile(join(folder, 'image'), 'sha256:old\n')
  const notes = join(folder, 'notes')
  await writeFile(notes, '')
  const env = {
    ...{ PATH: folder + delimiter + process.env.PATH, MADE: made },
    ...{ NOTES: notes, CONFIG: join(folder, 'config.yaml'), IMAGE_ID: join(folder, 'image'), FAILS: fails },
  }
  const { code, errors } = await new Promise<{ code: unknown; errors: string }>((done) => {
    execFile('sh', [SCRIPT, ...words], { env, timeout: 30_000 }, (error, _, errors) =>
      done({ code: error?.code ?? 0, errors }),
    )
  })
  const [asked, image] = await Promise.all([notes, join(folder, 'image')].map((file) => readFile(file, 'utf8')))
  return { code, errors, asked: asked?.trim().split('\n') ?? [], image: image?.trim() ?? '' }
}

it('an upgrade changes nothing and says what to do if the network of the containers is not the network of the compose file', async () => {
  const { code, errors, asked } = await upgrade('172.18.0.0/16')
  assert.equal(code, 1)
  assert.match(errors, /172\.18\.0\.0\/16.* 10\.201\.0\.0\/24/s)
  assert.match(errors, /docker compose build && docker compose down && docker compose up --detach/)
  assert.deepEqual(
    asked.filter((words) => !/^(compose config|network (ls|inspect)\b.*)$/.test(words)),
    [],
  )
})

it('an upgrade builds and migrates if the network of the containers is the network of the compose file, or does not exist yet', async () => {
  for (const made of ['10.201.0.0/24', 'fd00::/64 10.201.0.0/24', '']) {
    const { code, errors, asked } = await upgrade(made)
    assert.equal(code, 0, errors)
    assert.ok(asked.indexOf('compose build') < asked.indexOf('compose run --rm release'), made)
    assert.ok(asked.includes('compose build'), made)
  }
})

it('an upgrade replaces each service that runs a worker or an API node, also a service that an operator added', async () => {
  const { code, errors, asked } = await upgrade('')
  assert.equal(code, 0, errors)
  const replaced = asked.flatMap((words) => /^compose ps --quiet (.*)/.exec(words)?.[1] ?? [])
  assert.deepEqual(replaced, ['weather-worker', 'worker', 'web'])
  const started = asked.flatMap((words) => /^compose up --detach --wait --no-deps (.*)/.exec(words)?.[1] ?? [])
  assert.deepEqual(started, ['probe', 'ops'])
})

it('an upgrade that fails leaves the name of the image with the version that serves, which the next docker compose up starts', async () => {
  for (const fails of ['compose build', 'compose run --rm release', 'compose up --detach --wait --no-deps ops']) {
    const { code, image } = await upgrade('', { fails })
    assert.equal(code, 1, fails)
    assert.equal(image, 'sha256:old', fails)
  }
})

it('an upgrade keeps the image that it replaced for a rollback, which builds nothing', async () => {
  const upgraded = await upgrade('')
  assert.equal(upgraded.code, 0, upgraded.errors)
  assert.ok(
    upgraded.asked.includes('tag sha256:old registry.example.org:5000/gateway:previous'),
    String(upgraded.asked),
  )
  const rolledBack = await upgrade('', { words: ['--to', 'registry.example.org:5000/gateway:previous'] })
  assert.equal(rolledBack.code, 0, rolledBack.errors)
  const retag = 'tag registry.example.org:5000/gateway:previous registry.example.org:5000/gateway'
  assert.ok(rolledBack.asked.includes(retag), String(rolledBack.asked))
  assert.ok(!rolledBack.asked.includes('compose build'))
  const { code, errors } = await upgrade('', { words: ['--back'] })
  assert.equal(code, 1)
  assert.match(errors, /unknown word --back/)
})
