import { spawn } from 'node:child_process'
import path from 'node:path'

const NPM_MS = 20 * 60_000
const LINE_EVERY_MS = 10_000
const SHOWN_LINES_MAX = 60

/** What npm's error codes mean. The first match is shown. */
const EXPLANATIONS = [
  [/ENOSPC|EDQUOT/, 'The disk is full: about 600 MB are needed for the dependencies.'],
  [
    /EROFS|EACCES|EPERM/,
    'This account may not write to the project directory or to the npm cache; check their owner, or set npm_config_cache to a directory that is yours.',
  ],
  [
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|FETCH_ERROR/,
    'The npm registry could not be reached; check the network, the proxy and `npm config get registry`, then start again.',
  ],
  [
    /CERT_|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/,
    'The npm registry answered with a certificate that is not trusted here; behind a company proxy, set `npm config set cafile`.',
  ],
  [/E401|E403|ENEEDAUTH/, 'The npm registry refused access; check the credentials in your .npmrc.'],
  [/E404|ETARGET/, 'The npm registry in use does not have one of the packages; check `npm config get registry`.'],
  [
    /EINTEGRITY/,
    'A downloaded package differs from the package that package-lock.json names; try `npm cache clean --force`.',
  ],
  [/EUSAGE/, 'package.json and package-lock.json do not agree; run `npm install` and commit both.'],
]

/**
 * Runs npm in `root` and hides its output; shows `title` and the elapsed seconds instead. On
 * failure, npm's last lines are shown and the error explains them. A stop signal stops npm and all
 * its child processes; the error then has `signal`.
 */
export async function runNpm(root, npmArgs, { title, onStart }) {
  const child = spawn(
    ...npmCommand(root, [...npmArgs, '--no-audit', '--no-fund', '--no-update-notifier', '--no-progress']),
  )
  if (child.pid !== undefined) onStart(child.pid)
  const output = []
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => output.push(text))
  const progress = showProgress(title)
  const stopping = stopWith(child)
  const timer = setTimeout(() => killTree(child, 'SIGKILL'), NPM_MS)
  const { code, error } = await new Promise((resolve) => {
    child.once('error', (error) => resolve({ error }))
    child.once('close', (code) => resolve({ code }))
  })
  clearTimeout(timer)
  progress.end()
  const stoppedBy = stopping.end()
  if (stoppedBy)
    throw Object.assign(new Error('Stopped during the installation; the next start continues it.'), {
      signal: stoppedBy,
    })
  if (error) throw new Error(`npm could not be run (${error.message}); it comes with Node and must be on the PATH.`)
  if (code !== 0) throw new Error(explain(output.join(''), npmArgs))
}

/**
 * The command for npm: the npm that started us, or else the npm on the PATH. It runs on its own
 * Node and without our tools on the PATH, because `npm ci` deletes node_modules, and would delete
 * the Node that runs it.
 */
function npmCommand(root, npmArgs) {
  const tools = path.join(root, 'node_modules')
  const isOurs = (file) => path.resolve(file).startsWith(tools + path.sep)
  const env = { ...process.env }
  const pathName = Object.keys(env).find((key) => key.toUpperCase() === 'PATH') ?? 'PATH'
  const dirs = (env[pathName] ?? '').split(path.delimiter).filter((dir) => dir !== '' && !isOurs(dir))
  env[pathName] = dirs.join(path.delimiter)
  // npm gets its own process group, so that stopping it also stops its install scripts.
  const options = { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'], detached: process.platform !== 'win32' }
  const script = env.npm_execpath
  if (script && /^npm(-cli)?\.c?js$/.test(path.basename(script))) {
    const node = [env.npm_node_execpath, process.execPath].find((file) => file && !isOurs(file)) ?? 'node'
    return [node, [script, ...npmArgs], options]
  }
  return ['npm', npmArgs, { ...options, shell: process.platform === 'win32' }]
}

function showProgress(title) {
  const startedAt = performance.now()
  const seconds = () => `${Math.round((performance.now() - startedAt) / 1000)} s`
  const isTerminal = process.stderr.isTTY === true
  if (!isTerminal) console.error(`${title} …`)
  const draw = () => process.stderr.write(isTerminal ? `\r${title} … ${seconds()}` : `  … ${seconds()}\n`)
  if (isTerminal) draw()
  const timer = setInterval(draw, isTerminal ? 1000 : LINE_EVERY_MS)
  return {
    end: () => {
      clearInterval(timer)
      if (isTerminal) process.stderr.write('\n')
    },
  }
}

/**
 * Stops npm together with this process. `end()` returns the signal, if there was a signal. A second
 * signal kills this process at once.
 */
function stopWith(child) {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  let stoppedBy
  const stop = (signal) => {
    stoppedBy = signal
    killTree(child, 'SIGTERM')
    setTimeout(() => killTree(child, 'SIGKILL'), 5000).unref()
  }
  for (const signal of signals) process.once(signal, stop)
  return {
    end: () => {
      for (const signal of signals) process.removeListener(signal, stop)
      return stoppedBy
    },
  }
}

function killTree(child, signal) {
  try {
    if (process.platform === 'win32') child.kill(signal)
    else process.kill(-child.pid, signal)
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

function explain(output, npmArgs) {
  const lines = output.split('\n').filter((line) => line.trim() !== '' && !/^npm warn/i.test(line))
  const reason = EXPLANATIONS.find(([pattern]) => pattern.test(lines.join('\n')))?.[1]
  const said = lines.slice(-SHOWN_LINES_MAX).join('\n')
  return `${said}\n\nnpm ${npmArgs[0]} failed, so there is nothing to start with. ${reason ?? 'The output of npm is above.'}`
}
