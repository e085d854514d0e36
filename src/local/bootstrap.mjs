/**
 * `node src/local/bootstrap.mjs <script> [arguments]` is the first step of `npm start`, `npm test`,
 * `npm run operator` and `npm run clients`. It installs what is missing, then runs the script with
 * the pinned Node. It is plain JavaScript without dependencies, because a fresh clone has nothing
 * else.
 */

import { fileURLToPath } from 'node:url'

const NODE_MAJOR_MIN = 20

async function main() {
  if (Number(process.versions.node.split('.')[0]) < NODE_MAJOR_MIN) {
    console.error(`Node ${NODE_MAJOR_MIN} or newer is needed to start, and this is Node ${process.versions.node}.`)
    return process.exit(1)
  }
  const [script, ...scriptArgs] = process.argv.slice(2)
  if (script === undefined) {
    console.error('Usage: node src/local/bootstrap.mjs <script> [arguments]')
    return process.exit(1)
  }
  // Loaded only now, so that an old Node prints the sentence above and not a syntax error.
  const { ensureInstalled } = await import('./bootstrap/install.mjs')
  const { runScript } = await import('./bootstrap/run-script.mjs')
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const node = await ensureInstalled(root)
  await runScript({ root, node, script, scriptArgs })
}

await main()
