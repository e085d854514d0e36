/** Why a password is easily guessed, in one sentence; empty when nothing speaks against it. */
export declare function weakness(password: string): string
