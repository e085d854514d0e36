/** The report of a run of live calls. */

/** The outcome of a call. */
export interface Result {
  slug: string
  path: string
  outcome: 'ok' | 'failed' | 'skipped'
  status: number | undefined
  /** The error code. For a success, how it was served. */
  code: string
  ms: number
  drift: string[]
}

const MARKS = { ok: '✓', failed: '✗', skipped: '–' }

/** The line that is printed when a call ends. */
export function progress(result: Result, done: number, total: number): string {
  const { slug, path, outcome, status, code, ms, drift } = result
  const count = `[${String(done).padStart(String(total).length)}/${total}]`
  const told = [status ?? 'no answer', code, `${ms} ms`, drift.length > 0 ? `drift: ${drift.join(', ')}` : '']
  return [count, MARKS[outcome], slug, path, ...told].filter((part) => part !== '').join(' ')
}

/** The results as lines of a table, the worst first. */
export function table(results: Result[]): string[] {
  const rank = ({ outcome, drift }: Result) =>
    outcome === 'failed' ? 0 : drift.length > 0 ? 1 : outcome === 'ok' ? 2 : 3
  const rows = results
    .toSorted((one, other) => rank(one) - rank(other) || one.slug.localeCompare(other.slug))
    .map(({ slug, path, outcome, status, code, ms, drift }) => [
      MARKS[outcome],
      slug,
      path,
      String(status ?? '-'),
      code,
      String(ms),
      drift.join(', '),
    ])
  const all = [['', 'slug', 'endpoint', 'status', 'code', 'ms', 'drift'], ...rows]
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? []
  const pad = (cell: string, column: number) =>
    column === 5 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)
  return all.map((row) => row.map(pad).join('  ').trimEnd())
}

export function summary(results: Result[]): string {
  const count = (outcome: Result['outcome']) => results.filter((result) => result.outcome === outcome).length
  const drifted = results.filter(({ drift }) => drift.length > 0).length
  const counts = `${count('ok')} answered, ${count('failed')} failed, ${count('skipped')} skipped, ${drifted} drifted`
  return `${results.length} calls: ${counts}.`
}
