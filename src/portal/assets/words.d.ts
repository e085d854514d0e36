/** An error's words for a person. */
export declare function forPeople(error: { code: string; message?: string; hint?: string }): string
