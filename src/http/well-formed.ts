/** Control characters that no parameter needs, lone surrogates, and the two code points that are never characters. */
const ILL_FORMED = /[\0\ufffe\uffff]/

/** Whether a text may be stored and sent on: well-formed Unicode without NUL. */
export function isWellFormed(text: string): boolean {
  return !ILL_FORMED.test(text) && text.isWellFormed()
}
