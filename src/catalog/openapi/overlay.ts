import { isObject } from '../json.ts'
import { copyPlace, type Path, placeOf } from './places.ts'
import { type Findings, Unreadable } from './report.ts'
import { VALUES_MAX } from './token-guard.ts'

const ACTIONS_MAX = 500

/**
 * Most members and items that the actions of one overlay may write. Repeated writes count again.
 */
const WRITTEN_MAX = 4 * VALUES_MAX

/**
 * Applies an overlay (OpenAPI Overlay 1.x) to a document. Targets are member paths,
 * `$.paths['/orders'].post`, with at most one `*`. A target that matches nothing is an error,
 * because a typing error would otherwise have no effect and no message.
 *
 * @returns the changed document; the given document stays unchanged
 * @throws Unreadable if the overlay writes more than `WRITTEN_MAX` values; fails closed
 */
export function applyOverlay(document: unknown, overlay: unknown, findings: Findings): unknown {
  const { overlay: version, actions } = isObject(overlay) ? overlay : {}
  const error = (path: Path, text: string): void => {
    const place = placeOf(overlay, path)
    if (place) findings.errorAt(place, text)
    else findings.error([], `Overlay: ${text}`)
  }
  if (typeof version !== 'string' || !/^1\.\d+(\.\d+)?$/.test(version)) {
    error(['overlay'], 'The member overlay must be the version 1.0.0.')
    return document
  }
  if (!Array.isArray(actions)) {
    error(['actions'], 'The overlay must have a list of actions.')
    return document
  }
  if (actions.length > ACTIONS_MAX) {
    error(['actions'], `The overlay has ${actions.length} actions, and an overlay may have at most ${ACTIONS_MAX}.`)
    return document
  }
  let written = 0
  const spend = (values: number): void => {
    written += values
    if (written <= WRITTEN_MAX) return
    const text = `The overlay writes more than ${WRITTEN_MAX} values into the document.`
    error(['actions'], text)
    throw new Unreadable(text)
  }
  let result = document
  for (const [index, action] of actions.entries()) {
    const path = ['actions', index]
    const { target, update, remove } = isObject(action) ? action : {}
    const steps = typeof target === 'string' ? readTarget(target) : undefined
    if (!steps) {
      error(
        [...path, 'target'],
        "A target must be a path of members such as $.paths['/orders'].post, with at most one *.",
      )
      continue
    }
    const found = { count: 0 }
    result = change(result, steps, (value) => {
      found.count += 1
      return remove === true ? undefined : merge(value, update, spend)
    })
    if (found.count === 0) error([...path, 'target'], `The target ${String(target).slice(0, 100)} matches nothing.`)
  }
  if (!hasFewValues(result)) error(['actions'], `The document has more than ${VALUES_MAX} values with the overlay.`)
  return result
}

/** Whether a document has at most `VALUES_MAX` values. A shared value counts at each place. */
function hasFewValues(root: unknown): boolean {
  let count = 0
  const open = [root]
  while (open.length > 0 && count <= VALUES_MAX) {
    const value = open.pop()
    count += 1
    if (typeof value === 'object' && value !== null) open.push(...Object.values(value))
  }
  return count <= VALUES_MAX
}

/** The members of a target path; `*` means every member. Undefined for other forms of JSONPath. */
function readTarget(target: string): string[] | undefined {
  const parts = /^\$((?:\.[\w*-]+|\[(?:'[^'\\]*'|"[^"\\]*"|\d+|\*)\])*)$/.exec(target.trim())
  if (!parts) return undefined
  const steps = [...(parts[1] ?? '').matchAll(/\.([\w*-]+)|\[(?:'([^']*)'|"([^"]*)"|(\d+|\*))\]/g)].map(
    ([, plain, single, double, other]) => plain ?? single ?? double ?? other ?? '',
  )
  return steps.filter((step) => step === '*').length > 1 ? undefined : steps
}

/**
 * Changes the targets within a value and copies the objects above them. If `changed` returns
 * undefined, the target is removed.
 */
function change(value: unknown, steps: readonly string[], changed: (value: unknown) => unknown): unknown {
  const [step, ...rest] = steps
  if (step === undefined) return changed(value)
  if (Array.isArray(value)) {
    const wanted = (index: number) => step === '*' || String(index) === step
    const list: unknown[] = []
    for (const [index, item] of value.entries()) {
      const kept = wanted(index) ? change(item, rest, changed) : item
      if (kept === undefined) continue
      list.push(kept)
    }
    return list
  }
  if (!isObject(value)) return value
  const object: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) {
    const kept = step === '*' || step === name ? change(member, rest, changed) : member
    if (kept === undefined) continue
    object[name] = kept
    copyPlace(value, object, name)
  }
  return object
}

/** Merges objects member by member and joins lists. Anything else is replaced. */
function merge(value: unknown, update: unknown, spend: (values: number) => void): unknown {
  if (Array.isArray(value) && Array.isArray(update)) {
    spend(value.length + update.length)
    return [...value, ...update]
  }
  if (!isObject(value) || !isObject(update)) return update ?? value
  spend(Object.keys(value).length + Object.keys(update).length)
  const merged: Record<string, unknown> = { ...value }
  for (const name of Object.keys(value)) copyPlace(value, merged, name)
  for (const [name, member] of Object.entries(update)) {
    merged[name] = Object.hasOwn(value, name) ? merge(value[name], member, spend) : member
    copyPlace(update, merged, name)
  }
  return merged
}
