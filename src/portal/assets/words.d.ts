/** An error's words for a person. */
export declare function forPeople(error: { code: string; message?: string; hint?: string }): string

/** Who made calls, by the id that usage counts them under. */
export declare function callerWords(
  id: string,
  callers: {
    keys?: { id: string; label: string | null; keyPrefix: string; lastFour: string }[]
    connections?: { id: string; clientName: string }[]
  },
): string
