import { watch } from 'node:fs'

/**
 * Changes this close together count as one, milliseconds, because an editor writes several files,
 * and may write one file several times.
 */
const SETTLE_MS = 300

/**
 * Calls back after source files have changed.
 * @returns a function that stops the watching
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
