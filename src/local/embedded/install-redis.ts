import type { InstallPolicy } from '../../config.ts'
import { isRefused } from './refusal.ts'
import { lastLines, runCommand } from './run-command.ts'

const PROBE_MS = 5000
const STEP_MS = 5 * 60_000

type Manager = {
  tool: string
  /** Whether the package manager needs root, or refuses to run as root. */
  needsRoot: boolean
  prepare?: string[]
  install: string[]
  /** Packages to try. The first that provides a server is enough. */
  packages: string[]
}

const MANAGERS: Manager[] = [
  {
    tool: 'apt-get',
    needsRoot: true,
    prepare: ['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', 'update'],
    install: [
      ...['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', 'install', '-y', '--no-install-recommends'],
      ...['-o', 'DPkg::Lock::Timeout=60'],
    ],
    // Not redis-server, because that package also starts a system Redis on port 6379.
    packages: ['redis-tools', 'valkey-tools'],
  },
  { tool: 'apk', needsRoot: true, install: ['apk', 'add', '--no-cache'], packages: ['redis', 'valkey'] },
  { tool: 'dnf', needsRoot: true, install: ['dnf', 'install', '-y'], packages: ['valkey', 'redis'] },
  { tool: 'brew', needsRoot: false, install: ['brew', 'install'], packages: ['redis', 'valkey'] },
]

export interface InstallOptions<T> {
  print: (text: string) => void
  policy: InstallPolicy
  /** Looks for Redis after each attempt. */
  find: () => Promise<T | undefined>
}

/**
 * Installs Redis with the system's package manager if this needs no password: as root, or with a
 * `sudo` that does not ask. It first prints the exact command; at a terminal, any key cancels it.
 * If it fails, `problem` says why.
 */
export async function installRedis<T>({
  print,
  policy,
  find,
}: InstallOptions<T>): Promise<{ found?: T; problem?: string }> {
  if (policy === 'no') return { problem: 'INSTALL is no' }
  const manager = await findManager()
  if (manager === undefined) return { problem: 'no known package manager was found' }
  const prefix = await findRights(manager)
  if (prefix === undefined) return { problem: `this account cannot use ${manager.tool} without a password` }
  const commands = [manager.prepare ?? [], [...manager.install, manager.packages[0] ?? '']].filter(
    ({ length }) => length,
  )
  print(
    `Redis is missing. This command installs it: ${commands.map((words) => [...prefix, ...words].join(' ')).join(' && ')}`,
  )
  if (await isRefused(print)) return { problem: 'you declined the installation' }
  const run = async ([command = '', ...commandArgs]: string[]) => {
    print(`${[command, ...commandArgs].join(' ')} …`)
    return runCommand(command, commandArgs, { timeoutMs: STEP_MS })
  }
  // An old package list may be good enough, so a failed update is ignored.
  if (manager.prepare) await run([...prefix, ...manager.prepare])
  let problem = ''
  for (const name of manager.packages) {
    const { code, output } = await run([...prefix, ...manager.install, name])
    if (code !== 0) problem ||= `${manager.tool} could not install ${name}: ${lastLines(output, 3)}`
    const found = code === 0 ? await find() : undefined
    if (found !== undefined) return { found }
  }
  return { problem: problem || `${manager.tool} installed a Redis that is too old, or none` }
}

async function findManager(): Promise<Manager | undefined> {
  for (const manager of MANAGERS) {
    const { code } = await runCommand(manager.tool, ['--version'], { timeoutMs: PROBE_MS })
    if (code === 0) return manager
  }
  return undefined
}

/** The words before a command of this package manager; undefined if we may not use it. */
async function findRights({ needsRoot }: Manager): Promise<string[] | undefined> {
  const isRoot = process.getuid?.() === 0
  if (!needsRoot) return isRoot ? undefined : []
  if (isRoot) return []
  const { code } = await runCommand('sudo', ['-n', 'true'], { timeoutMs: PROBE_MS })
  return code === 0 ? ['sudo', '-n'] : undefined
}
