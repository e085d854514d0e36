import { watch } from 'node:fs'

/**
 * An editor writes several files, and one file several times: changes this close together are one,
 * milliseconds.
 */
const SETTLE_MS = 300

/**
 * Calls back after files of the service changed.
 * @returns how to stop
 */
export function watchSources(root: URL, onChange: (file: string) => void): () => void {
  let timer: NodeJS.Timeout | undefined
  const watchers = ['src', 'workers', 'migrations'].map((folder) =>
    watch(new URL(`${folder}/`, root), { recursive: true }, (_event, file) => {
      if (file === null || !/\.(ts|js|mjs|lua|css|json|md)$/.test(file)) return
      clearTimeout(timer)
      timer = setTimeout(() => onChange(`${folder}/${file}`), SETTLE_MS)
    }),
  )
  return () => {
    clearTimeout(timer)
    for (const watcher of watchers) watcher.close()
  }
}
