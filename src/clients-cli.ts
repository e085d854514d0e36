/**
 * Writes the clients of a running gateway as packages for npm and PyPI, and builds the npm package.
 * It publishes nothing. Usage: `npm run clients -- [address] [folder] [version]`.
 */
import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { npmPackage, type PackageFiles, pypiPackage } from './clients/packages.ts'

const COMPILER = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url))

const [address = 'http://localhost:3000', target = 'clients', given] = process.argv.slice(2)
const baseUrl = address.replace(/\/+$/, '')
const folder = resolve(target)

/** The folder is written anew, so that no files for another catalog remain. */
async function write(name: string, files: PackageFiles): Promise<string> {
  const place = join(folder, name)
  await rm(place, { recursive: true, force: true })
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(place, path)), { recursive: true })
    await writeFile(join(place, path), content)
  }
  return place
}

async function read(path: string): Promise<string> {
  const answer = await fetch(baseUrl + path).catch((error: Error) => {
    throw new Error(
      `no gateway answers at ${baseUrl} (${String(error.cause ?? error)}). Start it (npm start), or name its address: npm run clients -- http://localhost:3000`,
    )
  })
  if (!answer.ok) throw new Error(`${baseUrl}${path} answered ${answer.status}`)
  return await answer.text()
}

try {
  if (!URL.canParse(baseUrl)) {
    throw new Error(
      `${address} is not an http: or https: address. Usage: npm run clients -- [address] [folder] [version]`,
    )
  }
  const [typescript, python, document] = await Promise.all(['/client.ts', '/client.py', '/openapi.json'].map(read))
  const { info, servers } = JSON.parse(document ?? '') as { info: { version: string }; servers: { url: string }[] }
  const facts = { baseUrl: servers[0]?.url ?? baseUrl, version: given ?? info.version }
  const npm = await write('npm', npmPackage(typescript ?? '', facts))
  await promisify(execFile)(process.execPath, [COMPILER, '-p', npm])
  const pypi = await write('pypi', pypiPackage(python ?? '', facts))
  console.log(`${npm}\n  npm pack, or npm install ${npm}\n${pypi}\n  python -m build, or pip install ${pypi}`)
} catch (error) {
  const { message, stdout = '' } = error as Error & { stdout?: string }
  console.error(`The packages were not written: ${message}${stdout && `\n${stdout}`}`)
  process.exitCode = 1
}
