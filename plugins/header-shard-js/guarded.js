// Whatever a function throws ends its call without a word: here the operator is told what it was, and where.
import { write } from "forebay:policy/log@0.1.0";

/** The same functions. A list that is thrown is the answer of a `configure` that refuses, and no mistake. */
export function guarded(functions) {
  const telling = (run) => (...given) => {
    try {
      return run(...given);
    } catch (error) {
      if (!Array.isArray(error)) write("error", told(error));
      throw error;
    }
  };
  return Object.fromEntries(Object.entries(functions).map(([name, run]) => [name, telling(run)]));
}

function told(error) {
  const places = String(error?.stack ?? "").split("\n").map((line) => line.trim()).filter(Boolean);
  return [String(error), ...places].join(" ");
}
