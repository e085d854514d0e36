import { Compile } from 'typebox/schema'
import { type Selection, SelectionSchema } from './selection.ts'

const validator = Compile(SelectionSchema)

/**
 * The id of a task: the id of its call and, after a dot, the selection of its data. Any node can
 * read the selection from the id, so nothing more needs to be stored.
 */
export function taskIdOf(callId: string, selection: Selection): string {
  if (Object.keys(selection).length === 0) return callId
  return `${callId}.${Buffer.from(JSON.stringify(selection)).toString('base64url')}`
}

/** Reads a task id; undefined if it is not a task id. */
export function readTaskId(taskId: string): { callId: string; selection: Selection } | undefined {
  const [callId = '', encoded, ...others] = taskId.split('.')
  if (others.length > 0) return undefined
  if (encoded === undefined) return { callId, selection: {} }
  const selection = parsed(Buffer.from(encoded, 'base64url').toString())
  return validator.Check(selection) ? { callId, selection: selection as Selection } : undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The id is made up.
    return undefined
  }
}
