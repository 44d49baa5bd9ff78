// Prints as many short random ids as the first word says; one without a word.
import { nanoid } from "nanoid";

const count = Number(process.argv[2] ?? 1);
for (let number = 0; number < count; number += 1) console.log(nanoid(12));
