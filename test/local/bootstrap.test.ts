import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { isRunning } from '../../src/local/embedded/process-identity.ts'

const SRC = path.resolve(import.meta.dirname, '../../src/local')

/** Stands in for npm: notes each call, then does what the plan in the project says. */
const FAKE_NPM = `
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
const plan = JSON.parse(readFileSync('plan.json', 'utf8'))
appendFileSync('pids', process.pid + '\\n')
appendFileSync('calls', process.argv.slice(2).filter((word) => !word.startsWith('--no-')).join(' ') + '\\n')
if (plan.fail) {
  console.error('npm warn EBADENGINE noise')
  console.error(plan.fail)
  process.exit(1)
}
while (plan.hold && !existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 10))
if (process.argv[2] === 'ci') rmSync('node_modules', { recursive: true, force: true })
mkdirSync('node_modules/.bin', { recursive: true })
for (const name of ['scripted', 'refused']) mkdirSync('node_modules/' + name, { recursive: true })
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'))
for (const name of plan.leaveOut ?? []) delete lock.packages['node_modules/' + name]
writeFileSync('node_modules/.package-lock.json', JSON.stringify(lock))
if (!plan.noNode && !existsSync('node_modules/.bin/node')) symlinkSync(process.execPath, 'node_modules/.bin/node')
`

/** A script to start: tells how it runs, and ends as its argument says. */
const SCRIPT = `
import { writeFileSync } from 'node:fs'
const args = process.argv.slice(2)
console.log(JSON.stringify({ pid: process.pid, args, execPath: process.execPath, path: process.env.PATH }))
if (args[0] === 'signals') {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => console.log(signal))
  process.once('SIGINT', () => setTimeout(() => process.exit(7), 200))
  process.once('SIGHUP', () => setTimeout(() => process.exit(7), 1200))
  setInterval(() => {}, 1000)
  console.log('ready')
}
if (args[0] === 'wait') {
  process.once('disconnect', () => {
    writeFileSync('left-alone', '')
    process.exit()
  })
  console.log('ready')
}
if (args[0] === 'die') process.kill(process.pid, 'SIGTERM')
`

/** The package of the pinned Node on this platform. */
const NODE = `node-${process.platform}-${process.arch}`

type Plan = {
  leaveOut?: string[]
  noNode?: boolean
  fail?: string
  hold?: boolean
}

async function createProject(t: TestContext, plan: Plan = {}): Promise<string> {
  const root = await realpath(await mkdtemp(path.join(tmpdir(), 'bootstrap-')))
  t.after(() => rm(root, { recursive: true, force: true }))
  await cp(path.join(SRC, 'bootstrap.mjs'), path.join(root, 'src/local/bootstrap.mjs'))
  await cp(path.join(SRC, 'bootstrap'), path.join(root, 'src/local/bootstrap'), { recursive: true })
  await mkdir(path.join(root, 'fake-node', 'bin'), { recursive: true })
  const manifest = { name: 'fixture', version: '1.0.0', dependencies: { [NODE]: 'file:fake-node' } }
  const files = {
    'package.json': {
      ...manifest,
      type: 'module',
      scripts: { start: 'x' },
      allowScripts: { scripted: true, refused: false, absent: true },
    },
    'package-lock.json': {
      name: 'fixture',
      version: '1.0.0',
      lockfileVersion: 3,
      requires: true,
      packages: {
        '': manifest,
        'fake-node': { name: NODE, version: '1.0.0', bin: { node: 'bin/node' } },
        [`node_modules/${NODE}`]: { resolved: 'fake-node', link: true },
      },
    },
    'fake-node/package.json': { name: NODE, version: '1.0.0', bin: { node: 'bin/node' } },
    'plan.json': plan,
  }
  for (const [file, content] of Object.entries(files)) await writeFile(path.join(root, file), JSON.stringify(content))
  await writeFile(path.join(root, 'fake-node', 'bin', 'node'), `#!/bin/sh\nexec '${process.execPath}' "$@"\n`)
  await chmod(path.join(root, 'fake-node', 'bin', 'node'), 0o755)
  await writeFile(path.join(root, 'src', 'start.mjs'), SCRIPT)
  await writeFile(path.join(root, 'npm-cli.js'), FAKE_NPM)
  return root
}

type Run = { child: ChildProcess; output: () => string; ended: Promise<{ code: number | null; signal: string | null }> }

function start(root: string, args: string[] = [], env: NodeJS.ProcessEnv = {}): Run {
  const child = spawn(process.execPath, ['src/local/bootstrap.mjs', 'src/start.mjs', ...args], {
    cwd: root,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, npm_execpath: path.join(root, 'npm-cli.js'), npm_node_execpath: process.execPath, ...env },
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (part) => (text += part))
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  return { child, output: () => text, ended }
}

async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!(await condition())) {
    if (performance.now() > deadline) assert.fail(`timed out: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

const says = (run: Run, text: string) => until(() => run.output().includes(text), `${text} in ${run.output()}`)
const callsOf = (root: string) => readFile(path.join(root, 'calls'), 'utf8').catch(() => '')
const installsOf = async (root: string) => (await callsOf(root)).match(/^(ci|install) .*$/gm) ?? []
const ALL = '--include=dev --include=optional --ignore-scripts'
const lockOf = (root: string) => path.join(root, '.install-lock')
const noProc = process.platform !== 'linux'
const manifestOf = async (root: string) => JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8'))
const exists = (file: string) =>
  realpath(file).then(
    () => true,
    () => false,
  )

test('a project without a lock file, as in a container image, runs the script with its own Node and installs nothing', async (t) => {
  const root = await createProject(t)
  await rm(path.join(root, 'package-lock.json'))
  const run = start(root)
  assert.equal((await run.ended).code, 0, run.output())
  assert.equal(JSON.parse(run.output()).execPath, process.execPath)
  assert.equal(await callsOf(root), '')
})

test('a fresh clone is installed by npm, and the script runs with its arguments and our tools first on the PATH', async (t) => {
  const root = await createProject(t)
  const npm = process.env['npm_execpath'] ?? ''
  const run = start(root, ['--help', 'x'], { npm_execpath: npm.includes('npm') ? npm : '' })
  assert.equal((await run.ended).code, 0, run.output())
  const told = JSON.parse(
    run
      .output()
      .split('\n')
      .find((line) => line.startsWith('{')) ?? '',
  )
  assert.deepEqual(told.args, ['--help', 'x'])
  assert.equal(told.path.split(':')[0], path.join(root, 'node_modules', '.bin'))
  assert.match(run.output(), /Installing dependencies \(npm ci\)/)
})

test('a second start runs no npm', async (t) => {
  const root = await createProject(t)
  await start(root).ended
  const second = start(root)
  assert.equal((await second.ended).code, 0)
  assert.deepEqual(await installsOf(root), [`ci ${ALL}`])
  assert.doesNotMatch(second.output(), /Installing/)
})

test('a changed dependency is installed, a changed script of the manifest is not', async (t) => {
  const root = await createProject(t)
  const file = path.join(root, 'package.json')
  const manifest = JSON.parse(await readFile(file, 'utf8'))
  await start(root).ended
  await writeFile(file, JSON.stringify({ ...manifest, scripts: { start: 'y' } }))
  await start(root).ended
  assert.equal((await installsOf(root)).length, 1)
  const lockFile = path.join(root, 'package-lock.json')
  const lock = JSON.parse(await readFile(lockFile, 'utf8'))
  lock.packages['node_modules/extra'] = { version: '1.0.0' }
  await writeFile(lockFile, JSON.stringify(lock))
  await start(root).ended
  assert.equal((await installsOf(root)).length, 2)
})

test('packages that somebody installed with npm are not installed again, but their allowed scripts run, because npm may have run none', async (t) => {
  const root = await createProject(t)
  await mkdir(path.join(root, 'node_modules', '.bin'), { recursive: true })
  await mkdir(path.join(root, 'node_modules', 'scripted'))
  await cp(path.join(root, 'package-lock.json'), path.join(root, 'node_modules', '.package-lock.json'))
  await symlink(process.execPath, path.join(root, 'node_modules', '.bin', 'node'))
  for (const _start of [1, 2]) assert.equal((await start(root).ended).code, 0)
  assert.equal(await callsOf(root), 'rebuild scripted --ignore-scripts=false\n')
})

test('an optional package that somebody’s npm left out is installed, unless it is another platform’s', async (t) => {
  const optional = { version: '1.0.0', optional: true }
  for (const isLeftOut of [true, false]) {
    const root = await createProject(t)
    const lockFile = path.join(root, 'package-lock.json')
    const lock = JSON.parse(await readFile(lockFile, 'utf8'))
    lock.packages[''].optionalDependencies = { everywhere: '1.0.0', 'of-another': '1.0.0' }
    const listed = { ...lock.packages, ...(isLeftOut ? {} : { 'node_modules/everywhere': optional }) }
    lock.packages['node_modules/everywhere'] = optional
    lock.packages['node_modules/of-another'] = { ...optional, os: ['another'] }
    lock.packages['node_modules/of-a-dependency'] = optional
    await writeFile(lockFile, JSON.stringify(lock))
    await mkdir(path.join(root, 'node_modules', '.bin'), { recursive: true })
    await symlink(process.execPath, path.join(root, 'node_modules', '.bin', 'node'))
    await writeFile(path.join(root, 'node_modules', '.package-lock.json'), JSON.stringify({ packages: listed }))
    assert.equal((await start(root).ended).code, 0)
    assert.deepEqual(await installsOf(root), isLeftOut ? [`ci ${ALL}`] : [])
  }
})

test('a pinned Node that npm could not fetch ends the start with a sentence that says so', async (t) => {
  const root = await createProject(t, { noNode: true })
  const lockFile = path.join(root, 'package-lock.json')
  const lock = JSON.parse(await readFile(lockFile, 'utf8'))
  lock.packages[`node_modules/${NODE}`] = { version: '99.0.0', optional: true }
  await writeFile(lockFile, JSON.stringify(lock))
  const run = start(root)
  assert.equal((await run.ended).code, 1)
  assert.match(
    run.output(),
    /Node 99\.0\.0, which package-lock\.json pins, was not installed: the npm registry was not reached, or /,
  )
})

/** As if the last attempt to install the packages that npm left out was a day ago. */
async function passDay(root: string): Promise<void> {
  const file = path.join(root, 'node_modules', '.installed')
  const stamp = JSON.parse(await readFile(file, 'utf8'))
  await writeFile(file, JSON.stringify({ ...stamp, triedAt: stamp.triedAt - 86_400_000 }))
}

test('an optional package that npm leaves out is named at each start and tried again once a day, until it is installed', async (t) => {
  const root = await createProject(t, { leaveOut: ['everywhere'] })
  const lockFile = path.join(root, 'package-lock.json')
  const lock = JSON.parse(await readFile(lockFile, 'utf8'))
  lock.packages[''].optionalDependencies = { everywhere: '1.0.0' }
  lock.packages['node_modules/everywhere'] = { version: '1.0.0', optional: true }
  await writeFile(lockFile, JSON.stringify(lock))
  const first = [`ci ${ALL}`]
  const second = [...first, `install ${ALL}`]
  for (const expected of [first, first, second, second]) {
    if (expected === second && (await installsOf(root)).length === 1) await passDay(root)
    const run = start(root)
    assert.equal((await run.ended).code, 0, run.output())
    assert.match(run.output(), /^npm did not install everywhere: .* tries again after a day, and `npm ci` at once\.$/m)
    assert.deepEqual(await installsOf(root), expected)
  }
  await writeFile(path.join(root, 'plan.json'), '{}')
  await passDay(root)
  for (const _start of [1, 2]) {
    const run = start(root)
    assert.equal((await run.ended).code, 0, run.output())
    assert.doesNotMatch(run.output(), /did not install/)
    assert.equal((await installsOf(root)).length, 3)
  }
})

test('a Node that replaces the pinned Node is not accepted for good while npm fails to install the pinned Node', async (t) => {
  const root = await createProject(t, { noNode: true, leaveOut: [NODE] })
  const lockFile = path.join(root, 'package-lock.json')
  const lock = JSON.parse(await readFile(lockFile, 'utf8'))
  lock.packages[''].optionalDependencies = { [NODE]: '1.0.0' }
  const platform = { os: [process.platform], cpu: [process.arch] }
  lock.packages[`node_modules/${NODE}`] = { version: '1.0.0', optional: true, ...platform }
  await writeFile(lockFile, JSON.stringify(lock))
  for (const count of [1, 1, 2]) {
    if (count === 2) await passDay(root)
    const run = start(root)
    assert.equal((await run.ended).code, 0, run.output())
    const causes = `the npm registry was not reached, or it has no Node binary for ${process.platform} ${process.arch}.`
    assert.ok(run.output().includes(`was not installed: ${causes} Going on with Node ${process.versions.node}.`))
    assert.doesNotMatch(run.output(), /npm did not install/)
    assert.equal((await installsOf(root)).length, count)
  }
})

test('the install scripts that package.json allows run by name, and no others', async (t) => {
  const root = await createProject(t)
  const run = start(root)
  assert.equal((await run.ended).code, 0, run.output())
  assert.equal(await callsOf(root), `ci ${ALL}\nrebuild scripted --ignore-scripts=false\n`)
})

test('two starts at once install once, and the second says that it waits', async (t) => {
  const root = await createProject(t, { hold: true })
  const first = start(root)
  await until(async () => (await callsOf(root)) !== '', 'the first runs npm')
  const second = start(root)
  await says(second, `Another start (process ${first.child.pid}) is installing dependencies; waiting for it`)
  await writeFile(path.join(root, 'go'), '')
  const ends = await Promise.all([first.ended, second.ended])
  assert.deepEqual(
    ends.map(({ code }) => code),
    [0, 0],
  )
  assert.equal((await installsOf(root)).length, 1)
  assert.equal(await exists(lockOf(root)), false)
})

test('the lock of a killed start is taken over by one of several, which ends the npm that it left', async (t) => {
  const root = await createProject(t, { hold: true })
  const killed = start(root)
  await until(async () => (await callsOf(root)) !== '', 'npm runs')
  killed.child.kill('SIGKILL')
  await killed.ended.catch(() => undefined)
  const runs = [start(root), start(root), start(root)]
  await until(async () => (await installsOf(root)).length === 2, 'one goes on')
  const [orphan] = (await readFile(path.join(root, 'pids'), 'utf8')).split('\n')
  // A killed process has no command line any longer some time before it has ended.
  await until(() => !isRunning(Number(orphan)), 'the npm of the killed start has ended')
  const late = start(root)
  await says(late, 'Another start')
  const holder = Number(/process (\d+)/.exec(late.output())?.[1])
  assert.ok(
    runs.some(({ child }) => child.pid === holder),
    `${holder} holds the lock while its npm runs`,
  )
  await writeFile(path.join(root, 'go'), '')
  const ends = await Promise.all([...runs, late].map(({ ended }) => ended))
  assert.deepEqual(
    ends.map(({ code }) => code),
    [0, 0, 0, 0],
  )
  assert.equal((await installsOf(root)).length, 2)
})

for (const [fail, explanation] of [
  ['npm error code EAI_AGAIN', /npm registry could not be reached/],
  ['npm error code ENOSPC', /disk is full/],
  ['npm error code EACCES', /may not write/],
] as const) {
  test(`an install that fails with ${fail.split(' ').at(-1)} is shown and explained, without npm's noise`, async (t) => {
    const root = await createProject(t, { fail })
    const run = start(root)
    assert.equal((await run.ended).code, 1)
    assert.match(run.output(), explanation)
    assert.ok(run.output().includes(fail))
    assert.doesNotMatch(run.output(), /EBADENGINE/)
    assert.equal(await exists(lockOf(root)), false)
  })
}

test('a stop while installing stops npm too and frees the lock', async (t) => {
  const root = await createProject(t, { hold: true })
  const run = start(root)
  await until(async () => (await callsOf(root)) !== '', 'npm runs')
  run.child.kill('SIGTERM')
  assert.deepEqual(await run.ended, { code: null, signal: 'SIGTERM' })
  assert.equal(await exists(lockOf(root)), false)
})

test('a signal that comes from the terminal and from npm reaches the script once, and its code is ours', async (t) => {
  const root = await createProject(t)
  const run = start(root, ['signals'])
  await says(run, 'ready')
  process.kill(-(run.child.pid ?? 0), 'SIGINT')
  run.child.kill('SIGINT')
  assert.deepEqual(await run.ended, { code: 7, signal: null })
  assert.equal(run.output().split('SIGINT').length - 1, 1)
})

test('a script that dies by a signal makes us die by it', async (t) => {
  const root = await createProject(t)
  assert.deepEqual(await start(root, ['die']).ended, { code: null, signal: 'SIGTERM' })
})

test('the script gets a signal when the bootstrap is killed', async (t) => {
  const root = await createProject(t)
  const run = start(root, ['wait'])
  await says(run, 'ready')
  run.child.kill('SIGKILL')
  await until(() => exists(path.join(root, 'left-alone')), 'the script notices')
})

/**
 * Starts the script through `npm start`, and waits until it runs. It ends when every process that
 * holds its output has ended.
 */
async function startThroughNpm(root: string, way = 'directly') {
  const command = 'node src/local/bootstrap.mjs src/start.mjs signals'
  // If a command is not the last, the shell stays between the two.
  const scripts = { start: way === 'directly' ? command : `${command}; true` }
  await writeFile(path.join(root, 'package.json'), JSON.stringify({ ...(await manifestOf(root)), scripts }))
  const { npm_lifecycle_event: _event, ...env } = process.env
  const npm = spawn('npm', ['start'], { cwd: root, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(npm, 'close')
  let output = ''
  for (const stream of [npm.stdout, npm.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  await until(() => output.includes('ready'), `ready in ${output}`)
  return { npm, ended, output: () => output }
}

for (const way of ['directly', 'through a shell']) {
  test(`the script is stopped when the npm that runs it ${way} gets a signal`, { skip: noProc }, async (t) => {
    const root = await createProject(t)
    await start(root).ended
    const { npm, ended, output } = await startThroughNpm(root, way)
    const { pid = 0 } = JSON.parse(
      output()
        .split('\n')
        .find((line) => line.startsWith('{')) ?? '{}',
    )
    npm.kill('SIGTERM')
    await until(() => output().includes('SIGTERM'), 'the script is told')
    process.kill(pid, 'SIGKILL')
    await ended
  })
}

test('the script gets one signal when its terminal is closed, which ends npm too', { skip: noProc }, async (t) => {
  const root = await createProject(t)
  await start(root).ended
  const { npm, ended, output } = await startThroughNpm(root)
  process.kill(-(npm.pid ?? 0), 'SIGHUP')
  await ended
  assert.deepEqual(output().match(/^SIG\w+$/gm), ['SIGHUP'])
})

test('a lock of another machine is waited for while it shows life', async (t) => {
  const root = await createProject(t)
  await mkdir(lockOf(root))
  await writeFile(path.join(lockOf(root), 'owner'), JSON.stringify({ id: 'x', pid: 1, host: 'elsewhere' }))
  await utimes(lockOf(root), new Date(), new Date())
  const run = start(root)
  await says(run, 'waiting for it')
  await rm(lockOf(root), { recursive: true })
  assert.equal((await run.ended).code, 0)
})
